"""`python -m example_server`."""

import argparse

import uvicorn

from . import create_app

parser = argparse.ArgumentParser(prog="example_server")
parser.add_argument("--port", type=int, default=8018)
uvicorn.run(create_app(), host="127.0.0.1", port=parser.parse_args().port)
