"""Peers: people who compare profiles over a network, each holding only their own profile and their own account.

Everything here needs `pip install 'discretion[peers]'`, except `command`, which says so.
"""
