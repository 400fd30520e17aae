"""What a release is made of, as CycloneDX JSON: sbom.py PROGRAM LIBRARY... -- BUILD_PACKAGE...

The shared libraries that the program and the libraries need, each with its Debian package, and the packages that the
build takes (tools/setup.sh), whose headers become part of what is built."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

PACKAGE_FIELDS = "${binary:Package}\t${Version}\t${Architecture}\t${Homepage}\t${Maintainer}\n"


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(binary):
    """The files of the shared libraries that the loader takes for it."""
    return {pathlib.Path(path).resolve() for path in re.findall(r"=> (/\S+)", said("ldd", str(binary)))}


def package_of(path):
    for name in (path, pathlib.Path(str(path).removeprefix("/usr"))):
        ran = subprocess.run(["dpkg-query", "-S", str(name)], capture_output=True, text=True)
        if ran.returncode == 0:
            return ran.stdout.partition(": ")[0].split(",")[0]
    return None


def licenses_of(package):
    """Those that the package's copyright file names, where a machine can read it."""
    path = pathlib.Path("/usr/share/doc") / package.partition(":")[0] / "copyright"
    text = path.read_text(errors="replace") if path.exists() else ""
    return sorted(set(re.findall(r"^License: *(\S.*)$", text, re.M)))


def component(package, scope):
    ran = subprocess.run(["dpkg-query", "-W", "-f", PACKAGE_FIELDS, package], capture_output=True, text=True)
    if ran.returncode != 0:
        return None
    name, version, architecture, homepage, maintainer = ran.stdout.splitlines()[0].split("\t")
    name = name.partition(":")[0]
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": scope, "purl": purl,
            "supplier": {"name": maintainer},
            **({"licenses": [{"license": {"name": one}} for one in licenses_of(name)]} if licenses_of(name) else {}),
            **({"externalReferences": [{"type": "website", "url": homepage}]} if homepage else {})}


def main(arguments):
    split = arguments.index("--")
    binaries, packages = [pathlib.Path(word) for word in arguments[:split]], arguments[split + 1:]
    version = said(str(binaries[0]), "--version").split()[1]
    ours = {binary.resolve() for binary in binaries}
    runtime = {package_of(path) for binary in binaries for path in needed(binary) - ours} - {None}
    found = {one["purl"]: one for name in sorted(runtime) if (one := component(name, "required"))}
    for name in packages:
        one = component(name, "excluded")
        if one:
            found.setdefault(one["purl"], one)
    own = f"pkg:generic/trellis@{version}"
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    files = [{"type": "file", "bom-ref": binary.name, "name": binary.name,
              "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(binary.read_bytes()).hexdigest()}]}
             for binary in binaries]
    body = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%FT%TZ"),
                         "component": {"type": "application", "bom-ref": own, "name": "trellis", "version": version,
                                       "purl": own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
            "components": files + list(found.values()),
            "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in found.values()
                                                        if one["scope"] == "required"]}]}
    body["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))}"
    json.dump(body, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
