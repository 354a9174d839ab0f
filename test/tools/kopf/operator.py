"""Operator of Lamps as kopf's users write it: it knows nothing of Keelson. scripts/kopf-check.mjs runs it."""

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.peering.name = "lamps"
    settings.peering.mandatory = True
    settings.persistence.finalizer = "lamps.example.com/release"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="lamps.example.com")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="lamps.example.com")
    settings.watching.server_timeout = 5


@kopf.on.create("lamps")
def created(spec, meta, patch, body, **_):
    patch.status["watts"] = spec["volts"] * spec["amperes"]
    kopf.info(body, reason="Lit", message="The lamp is on.")
    print(f"created {meta['name']} {meta['generation']}", flush=True)
    return {"lit": True}


@kopf.on.resume("lamps")
def resumed(meta, **_):
    print(f"resumed {meta['name']} {meta['generation']}", flush=True)


@kopf.on.update("lamps", field="spec.volts")
def updated(old, new, spec, meta, patch, **_):
    patch.status["watts"] = new * spec["amperes"]
    print(f"updated {meta['name']} {meta['generation']} {old} {new}", flush=True)


@kopf.on.delete("lamps", retries=5, backoff=0.1)
def deleted(meta, retry, **_):
    if retry < 2:
        raise kopf.TemporaryError("the lamp is hot", delay=0.2)
    print(f"deleted {meta['name']} after {retry}", flush=True)


@kopf.index("lamps")
def rooms(spec, name, **_):
    return {spec.get("room", "none"): name}


@kopf.timer("lamps", interval=1, initial_delay=0, annotations={"lamps.example.com/probe": "now"})
def probed(rooms: kopf.Index, patch, **_):
    patch.meta.annotations["lamps.example.com/probe"] = ",".join(sorted(rooms))
