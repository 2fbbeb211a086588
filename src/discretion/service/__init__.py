"""The service: owns the data and the ledger, and lets stewards, analysts and people in by HTTP.

Reading order: server.py starts it, app.py puts it together, permission.py says who may do what, identity.py who is
asking, routes/ what happens then, pool.py and worker.py where questions are computed. client.py is the other side: the
Connection behind `dn.connect("https://...")`.
"""
