"""Poisons: messages that kill or hang the job of their batch, found and left out."""
