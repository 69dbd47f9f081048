"""Inputs of the wire contract as pydantic models: what clients may send, refused with the field's path otherwise."""
