"""Puts Mango on AWS, or on an emulator of it."""
