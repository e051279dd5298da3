"""The bill of materials against the schema of CycloneDX, and what no schema can say: whatever is named is there.

That it is of the crates in Cargo.lock is held by tests/house.rs.
"""

import json

from checks import TOP
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

BOM = TOP / "deploy/stdiowatch.cdx.json"


def bill_of_materials(check):
    text = BOM.read_text(encoding="utf-8")
    bom = json.loads(text)
    version = SchemaVersion.from_version(bom["specVersion"])
    check(f"the bill of materials is CycloneDX {bom['specVersion']}", JsonStrictValidator(version).validate_str(text) or "")
    broken = json.dumps({**bom, "components": [{**bom["components"][0], "type": "crate"}]})
    check("one that is not is noticed", "" if JsonStrictValidator(version).validate_str(broken) else "it is taken for one")
    refs = [bom["metadata"]["component"]["bom-ref"], *(component["bom-ref"] for component in bom["components"])]
    check.equal("nothing is in it twice", len(set(refs)), len(refs))
    named = {ref for entry in bom["dependencies"] for ref in (entry["ref"], *entry.get("dependsOn", ()))}
    check.equal("what depends, and on what, is in it", sorted(named - set(refs)), [])
    check.equal("what is in it is needed by something", sorted(set(refs) - named), [])
