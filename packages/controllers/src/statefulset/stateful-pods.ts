import { type coreV1, type Pod, StatefulSet, type Volume } from '@keelson/kinds';
import { isAvailable, isReady } from '../workload/pod-state.ts';
import { podOf } from '../workload/pod-writes.ts';
import { revisionLabel } from '../workload/revisions.ts';

const podNameLabel = 'statefulset.kubernetes.io/pod-name';
const podIndexLabel = 'apps.kubernetes.io/pod-index';
const memberName = /^(.*)-(0|[1-9]\d{0,9})$/;

/** The number at the end of a pod's name; undefined for pods that are not named like a pod of the set. */
export function ordinalOf(pod: Pod, set: StatefulSet): number | undefined {
  const [, parent, ordinal] = memberName.exec(pod.metadata?.name ?? '') ?? [];
  return parent === set.metadata?.name && ordinal !== undefined ? Number(ordinal) : undefined;
}

export function firstOrdinal({ spec }: StatefulSet): number {
  return spec.ordinals?.start ?? 0;
}

/** The name of the revision of a pod. */
export function podRevision({ metadata }: Pod): string {
  return metadata?.labels?.[revisionLabel] ?? '';
}

export function isTerminating({ metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined;
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === 'Running' && isReady(pod);
}

/** True when the pod runs, is not being deleted, and has been ready for `minReadySeconds`. */
export function isHealthy(pod: Pod, set: StatefulSet, now: number): boolean {
  return isRunningAndReady(pod) && !isTerminating(pod) && isAvailable(pod, set.spec.minReadySeconds ?? 0, now);
}

/** The pod object for an ordinal, made of the pod template with the name and volumes of the ordinal. */
export function statefulPod(set: StatefulSet, ordinal: number, revision: string): Pod {
  const { generateName: _, ...metadata } = podOf(set.spec.template, StatefulSet, set).metadata ?? {};
  const name = `${set.metadata?.name}-${ordinal}`;
  const spec = structuredClone(set.spec.template.spec ?? { containers: [] });
  const volumes = volumesOf(set, ordinal, spec.volumes ?? []);
  return {
    metadata: {
      ...metadata,
      name,
      labels: { ...metadata.labels, ...identityLabels(name, ordinal), [revisionLabel]: revision },
    },
    spec: {
      ...spec,
      hostname: name,
      ...(set.spec.serviceName ? { subdomain: set.spec.serviceName } : {}),
      ...(volumes.length > 0 ? { volumes } : {}),
    },
  };
}

/** The labels that identify the pod, if it lacks one of them. */
export function missingIdentity(pod: Pod, ordinal: number): Record<string, string> | undefined {
  const labels = identityLabels(pod.metadata?.name ?? '', ordinal);
  const complete = Object.entries(labels).every(([name, value]) => pod.metadata?.labels?.[name] === value);
  return complete ? undefined : labels;
}

function identityLabels(name: string, ordinal: number): Record<string, string> {
  return { [podNameLabel]: name, [podIndexLabel]: String(ordinal) };
}

export function claimName(set: StatefulSet, template: coreV1.PersistentVolumeClaim, ordinal: number): string {
  return `${template.metadata?.name}-${set.metadata?.name}-${ordinal}`;
}

/** The volumes of the template. A volume with the name of a claim template is replaced by the claim. */
function volumesOf(set: StatefulSet, ordinal: number, volumes: readonly Volume[]): Volume[] {
  const claims = (set.spec.volumeClaimTemplates ?? []).map((template) => ({
    name: template.metadata?.name ?? '',
    persistentVolumeClaim: { claimName: claimName(set, template, ordinal) },
  }));
  const names = new Set(claims.map(({ name }) => name));
  return [...claims, ...volumes.filter(({ name }) => !names.has(name))];
}
