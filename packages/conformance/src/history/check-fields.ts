import { sameFields } from './expected-state.ts';
import type { Version, Versions } from './versions.ts';
import type { Findings } from './violation.ts';

/** Fields that the server owns: uid, creationTimestamp, generation. */
export function checkFields(versions: Versions, findings: Findings): void {
  const owners = new Map<string, { readonly key: string; readonly created: Version; gone?: Version }>();
  for (const kind of versions.kinds) {
    for (const key of versions.keys(kind)) {
      let before: Version | undefined;
      for (const version of versions.chain(key)) {
        if (!version.deleted) {
          const { uid } = version.object;
          const owner = owners.get(uid);
          if (owner === undefined) owners.set(uid, { key, created: version });
          else if (owner.key !== key)
            findings.add('I10', `uid ${uid} is used by ${owner.key} and ${key}`, owner.created.source, version.source);
          else if (owner.gone !== undefined) {
            const text = `${key} with uid ${uid} is back at ${version.revision} after its deletion at ${owner.gone.revision}`;
            findings.add('I10', text, owner.gone.source, version.source, version.object);
          }
          compare(version, before, findings);
        } else {
          const owner = owners.get(version.object.uid);
          if (owner !== undefined) owner.gone ??= version;
        }
        before = version;
      }
    }
  }
}

function compare(version: Version, before: Version | undefined, findings: Findings): void {
  const { object, key, revision, source } = version;
  const old = before?.object;
  if (before === undefined || before.deleted || old === undefined) {
    if (object.generation !== undefined && version.write?.op.do === 'create' && object.generation !== 1) {
      findings.add('I10', `${key} was created with generation ${object.generation}`, source, object);
    }
    return;
  }
  if (object.uid !== old.uid) findings.add('I10', `the uid of ${key} changed at ${revision}`, source, object, old);
  if (object.created !== old.created)
    findings.add('I10', `the creationTimestamp of ${key} changed at ${revision}`, source, object, old);
  const due =
    old.generation === undefined ? undefined : old.generation + (sameFields(object.values, old.values) ? 0 : 1);
  if (object.generation !== due) {
    findings.add(
      'I10',
      `the generation of ${key} at ${revision} is ${object.generation}, must be ${due}`,
      source,
      object,
      old,
    );
  }
}
