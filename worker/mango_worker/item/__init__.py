"""The item process: holds one work item's lease and runs the tool calls of its session."""
