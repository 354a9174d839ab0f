import type { coreV1, Pod } from '@keelson/kinds';
import type { EnvironmentFacts } from '../../base/pod/environment-facts.ts';
import { fieldValue } from '../../base/pod/field-value.ts';
import { allContainersOf } from '../../base/pod/pod-spec.ts';
import { resourceValue } from '../../base/pod/resource-value.ts';
import type { Payload, PayloadFile } from './atomic-writer.ts';
import { VolumeProblem } from './volume-problem.ts';

type Files = Map<string, PayloadFile>;

interface Entries {
  readonly subject: string;
  /** Undefined when the object does not exist. */
  readonly contents: ReadonlyMap<string, Buffer> | undefined;
  readonly items: readonly coreV1.KeyToPath[] | undefined;
  readonly optional: boolean | undefined;
}

const defaultMode = 0o644;
const defaultTokenSeconds = 3600;

/**
 * The files of a volume with API objects or facts about the pod; undefined for other volumes.
 *
 * @throws VolumeProblem
 */
export async function volumePayload(
  volume: coreV1.Volume,
  pod: Pod,
  facts: EnvironmentFacts,
): Promise<Payload | undefined> {
  const { configMap, secret, downwardAPI, projected } = volume;
  const files: Files = new Map();
  const mode = (configMap ?? secret ?? downwardAPI ?? projected)?.defaultMode ?? defaultMode;
  if (configMap) await addPart(files, { configMap }, pod, facts, mode);
  else if (secret) await addPart(files, { secret: { ...secret, name: secret.secretName ?? '' } }, pod, facts, mode);
  else if (downwardAPI) await addPart(files, { downwardAPI }, pod, facts, mode);
  else if (projected) for (const part of projected.sources ?? []) await addPart(files, part, pod, facts, mode);
  else return undefined;
  return files;
}

async function addPart(
  files: Files,
  part: coreV1.VolumeProjection,
  pod: Pod,
  facts: EnvironmentFacts,
  mode: number,
): Promise<void> {
  const namespace = pod.metadata?.namespace ?? '';
  const { configMap, secret, downwardAPI, serviceAccountToken } = part;
  if (configMap) {
    const name = configMap.name ?? '';
    const found = await facts.objects.configMap(namespace, name);
    const contents = found && new Map([...texts(found.data, 'utf8'), ...texts(found.binaryData, 'base64')]);
    addEntries(
      files,
      { subject: `configmap "${name}"`, contents, items: configMap.items, optional: configMap.optional },
      mode,
    );
  } else if (secret) {
    const name = secret.name ?? '';
    const found = await facts.objects.secret(namespace, name);
    const contents = found && texts(found.data, 'base64');
    addEntries(files, { subject: `secret "${name}"`, contents, items: secret.items, optional: secret.optional }, mode);
  } else if (downwardAPI) {
    for (const item of downwardAPI.items ?? []) addFact(files, item, pod, facts, mode);
  } else if (serviceAccountToken) {
    const { path, audience, expirationSeconds } = serviceAccountToken;
    if (facts.tokens === undefined) throw new VolumeProblem('there is no API server that issues tokens');
    const wish = { audience, expirationSeconds: Number(expirationSeconds ?? defaultTokenSeconds) };
    files.set(safePath(path), { content: Buffer.from(await facts.tokens.token(pod, wish)), mode });
  } else {
    const [kind] = Object.keys(part);
    if (kind === undefined) return;
    throw new VolumeProblem(`${kind} is not supported in projected volumes by this agent`);
  }
}

function texts(data: Readonly<Record<string, string>> | undefined, encoding: 'utf8' | 'base64'): Map<string, Buffer> {
  return new Map(Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, encoding)]));
}

function addEntries(files: Files, { subject, contents, items, optional }: Entries, mode: number): void {
  if (contents === undefined) {
    if (optional === true) return;
    throw new VolumeProblem(`${subject} not found`);
  }
  if (!items?.length) for (const [key, content] of contents) files.set(safePath(key), { content, mode });
  for (const { key, path, mode: own } of items ?? []) {
    const content = contents.get(key);
    if (content !== undefined) files.set(safePath(path), { content, mode: own ?? mode });
    else if (optional !== true) throw new VolumeProblem(`${subject} has no key ${key}`);
  }
}

function addFact(
  files: Files,
  item: coreV1.DownwardAPIVolumeFile,
  pod: Pod,
  facts: EnvironmentFacts,
  mode: number,
): void {
  const { path, fieldRef, resourceFieldRef } = item;
  const container = allContainersOf(pod).find(({ name }) => name === resourceFieldRef?.containerName);
  const value = fieldRef
    ? fieldValue(fieldRef.fieldPath, pod, facts.place)
    : resourceFieldRef &&
      container &&
      resourceValue(container, resourceFieldRef.resource, resourceFieldRef.divisor, facts.allocatable);
  if (value === undefined)
    throw new VolumeProblem(`file ${path} of the downward API refers to an unknown field or container`);
  files.set(safePath(path), { content: Buffer.from(value), mode: item.mode ?? mode });
}

/** The API server rejects such paths, but manifests of other sources and keys may contain them. */
function safePath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (path.startsWith('/') || parts.length === 0 || parts.some((part) => part.startsWith('..'))) {
    throw new VolumeProblem(`file path "${path}" is outside of the volume`);
  }
  return parts.join('/');
}
