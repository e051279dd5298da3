"""Holds objects of the Prometheus operator against its types: crds.py FILE, of YAML documents. Says what is wrong.

Runs in DIR/venv/crds of install.sh. Keys that the types do not know are dropped silently by a cluster, so they are looked
for by reading and writing each object again.
"""

import sys

import yaml
from cloudcoil.models.prometheus_operator import v1


def lost(there, back, path=""):
    if isinstance(there, dict):
        for key, value in there.items():
            if not isinstance(back, dict) or key not in back:
                yield f"{path}.{key} is no field"
            else:
                yield from lost(value, back[key], f"{path}.{key}")
    elif isinstance(there, list):
        for number, (value, other) in enumerate(zip(there, back)):
            yield from lost(value, other, f"{path}[{number}]")


for thing in yaml.safe_load_all(open(sys.argv[1])):
    try:
        read = getattr(v1, thing["kind"]).model_validate(thing)
    except ValueError as error:
        print(f"{thing['kind']} {thing['metadata']['name']}: {error}")
        continue
    for wrong in lost(thing, read.model_dump(by_alias=True, exclude_unset=True, mode="json")):
        print(f"{thing['kind']} {thing['metadata']['name']}: {wrong}")
