"""The embedded profile: Mango on one machine, and the operator's command line."""
