"""An application of Mango: an agent repairs a Python module, and the application checks the repair on its own."""
