"""Model clients: any Messages endpoint, Bedrock, an offline echo, and scripts."""
