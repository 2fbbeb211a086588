"""Personalized differential privacy."""
