import { addedCapabilities, baselineChecks, forbiddenSeccomp } from './baseline-checks.ts';
import {
  type Check,
  named,
  namesOf,
  offenders,
  type PodView,
  plural,
  quoted,
  settersOf,
  sorted,
  type Violation,
} from './pod-view.ts';
import type { LevelVersion } from './policy.ts';

const allowedVolumes = new Set([
  ...['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'image', 'persistentVolumeClaim', 'projected'],
  'secret',
]);

/** From 1.25 on, checks of settings that Windows pods cannot have do not apply to them. */
const isExempt = ({ spec }: PodView, minor: number): boolean => minor >= 25 && spec.os?.name === 'windows';

function allowPrivilegeEscalation(pod: PodView, minor: number): Violation | undefined {
  if (isExempt(pod, minor)) return undefined;
  const names = namesOf(pod.containers, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (names.length === 0) return undefined;
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${named('container', names)} must set securityContext.allowPrivilegeEscalation=false`,
  };
}

function capabilities(pod: PodView, minor: number): Violation | undefined {
  if (isExempt(pod, minor)) return undefined;
  const keeping = namesOf(
    pod.containers,
    ({ securityContext }) => !securityContext?.capabilities?.drop?.includes('ALL'),
  );
  const details = [
    keeping.length > 0
      ? `${named('container', keeping)} must set securityContext.capabilities.drop=["ALL"]`
      : undefined,
    addedCapabilities(pod, (name) => name === 'NET_BIND_SERVICE'),
  ].filter((detail) => detail !== undefined);
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') };
}

function volumes({ spec }: PodView): Violation | undefined {
  const types: string[] = [];
  const names = namesOf(spec.volumes ?? [], ({ name: _, ...sources }) => {
    const set = Object.entries(sources).flatMap(([type, source]) => (source === undefined ? [] : [type]));
    if (set.some((type) => allowedVolumes.has(type))) return false;
    types.push(set[0] ?? 'unknown');
    return true;
  });
  if (names.length === 0) return undefined;
  const distinct = sorted(types);
  const type = plural(distinct.length, 'restricted volume type');
  const detail = `${named('volume', names)} ${plural(names.length, 'uses', 'use')} ${type} ${quoted(distinct)}`;
  return { reason: 'restricted volume types', detail };
}

function runAsNonRoot(pod: PodView): Violation | undefined {
  const reason = 'runAsNonRoot != true';
  const bad = settersOf(offenders(pod, (context) => context.runAsNonRoot === false));
  if (bad !== '') return { reason, detail: `${bad} must not set securityContext.runAsNonRoot=false` };
  if (pod.spec.securityContext?.runAsNonRoot) return undefined;
  const unset = namesOf(pod.containers, ({ securityContext }) => securityContext?.runAsNonRoot === undefined);
  if (unset.length === 0) return undefined;
  return { reason, detail: `pod or ${named('container', unset)} must set securityContext.runAsNonRoot=true` };
}

function runAsUser(pod: PodView): Violation | undefined {
  const bad = settersOf(offenders(pod, (context) => context.runAsUser === 0));
  return bad === '' ? undefined : { reason: 'runAsUser=0', detail: `${bad} must not set runAsUser=0` };
}

function seccompProfile(pod: PodView, minor: number): Violation | undefined {
  if (isExempt(pod, minor)) return undefined;
  const forbidden = forbiddenSeccomp(pod);
  if (forbidden !== undefined || pod.spec.securityContext?.seccompProfile) return forbidden;
  const unset = namesOf(pod.containers, ({ securityContext }) => securityContext?.seccompProfile === undefined);
  if (unset.length === 0) return undefined;
  return {
    reason: 'seccompProfile',
    detail:
      `pod or ${named('container', unset)} must set securityContext.seccompProfile.type to "RuntimeDefault" or ` +
      '"Localhost"',
  };
}

/** The checks that the level `restricted` adds, in the order of messages. */
const restrictedChecks: readonly Check[] = [
  { since: 8, examine: allowPrivilegeEscalation },
  { since: 22, examine: capabilities },
  { since: 0, examine: volumes },
  { since: 0, examine: runAsNonRoot },
  { since: 23, examine: runAsUser },
  { since: 19, examine: seccompProfile },
];

/** What violates a level, in the order of messages. */
export function evaluate({ level, minor }: LevelVersion, pod: PodView): Violation[] {
  if (level === 'privileged') return [];
  const checks =
    level === 'baseline'
      ? baselineChecks
      : [
          ...baselineChecks.filter(({ replacedSince }) => replacedSince === undefined || minor < replacedSince),
          ...restrictedChecks,
        ];
  return checks.flatMap(({ since, examine }) => (minor < since ? [] : (examine(pod, minor) ?? [])));
}

/** Short form of violations, for messages about several pods. */
export const reasonsOf = (violations: readonly Violation[]): string =>
  violations.map(({ reason }) => reason).join(', ');

/** Long form of violations, for messages about one pod. */
export const detailsOf = (violations: readonly Violation[]): string =>
  violations.map(({ reason, detail }) => `${reason} (${detail})`).join(', ');
