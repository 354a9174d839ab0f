import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { VolumeProblem } from './volume-problem.ts';

const prefix = 'kubernetes.io/';

/**
 * What a driver is told of a volume and its pod, as JSON; the options of the volume cannot hide what the agent says.
 * @throws VolumeProblem
 */
export async function flexOptions(
  pod: Pod,
  volumeName: string,
  source: coreV1.FlexVolumeSource,
  objects: ObjectReader,
): Promise<string> {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const fsGroup = pod.spec.securityContext?.fsGroup;
  const options: Record<string, string> = {
    ...source.options,
    ...(await secretOptions(namespace, source.secretRef?.name, objects)),
    [`${prefix}fsType`]: source.fsType ?? '',
    [`${prefix}readwrite`]: source.readOnly === true ? 'ro' : 'rw',
    [`${prefix}pvOrVolumeName`]: volumeName,
    [`${prefix}pod.name`]: name,
    [`${prefix}pod.namespace`]: namespace,
    [`${prefix}pod.uid`]: uidOf(pod),
    [`${prefix}serviceAccount.name`]: pod.spec.serviceAccountName ?? '',
  };
  if (typeof fsGroup === 'number') options[`${prefix}fsGroup`] = String(fsGroup);
  return JSON.stringify(options);
}

/** Values stay in base64, as drivers expect them. */
async function secretOptions(
  namespace: string,
  name: string | undefined,
  objects: ObjectReader,
): Promise<Record<string, string>> {
  if (!name) return {};
  const secret = await objects.secret(namespace, name);
  if (secret === undefined) throw new VolumeProblem(`secret "${name}" not found`);
  return Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, value]) => [`${prefix}secret/${key}`, value]));
}
