import type { Container, coreV1, PodSpec } from '@keelson/kinds';

type Contexts = coreV1.PodSecurityContext | coreV1.SecurityContext;
type AnyContainer = Container | NonNullable<PodSpec['ephemeralContainers']>[number];

/** What the checks examine of a pod or of the template of a workload. */
export interface PodView {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
  /** Init containers, containers and ephemeral containers, in this order. */
  readonly containers: readonly AnyContainer[];
}

/** A rule that a pod does not comply with: what is wrong, and where. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** One rule of a Pod Security Standard. */
export interface Check {
  /** Minor version of Kubernetes 1 that introduced the check. */
  readonly since: number;
  /** Version from which a stricter check applies at the level `restricted` instead. */
  readonly replacedSince?: number;
  readonly examine: (pod: PodView, minor: number) => Violation | undefined;
}

/** The parts of a pod that do not comply with a check of security contexts. */
export interface Offenders {
  /** True for the security context of the pod itself. */
  readonly pod: boolean;
  /** Names of containers. */
  readonly containers: readonly string[];
}

/** A view of what `spec` describes. */
export function podView(annotations: Readonly<Record<string, string>> | undefined, spec: PodSpec): PodView {
  return {
    annotations: annotations ?? {},
    spec,
    containers: [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])],
  };
}

/** Examines the security contexts of the pod and of its containers. */
export function offenders({ spec, containers }: PodView, isBad: (context: Contexts) => boolean): Offenders {
  return {
    pod: spec.securityContext !== undefined && isBad(spec.securityContext),
    containers: namesOf(containers, ({ securityContext }) => securityContext !== undefined && isBad(securityContext)),
  };
}

/** Names of the containers or volumes that `isBad`. */
export function namesOf<T extends { readonly name: string }>(all: readonly T[], isBad: (one: T) => boolean): string[] {
  return all.filter(isBad).map(({ name }) => name);
}

/** `"a", "b"` */
export const quoted = (names: Iterable<string>): string => [...names].map((name) => `"${name}"`).join(', ');

/** The words for one or several. */
export const plural = (count: number, one: string, several = `${one}s`): string => (count === 1 ? one : several);

/** `container "a"`, `volumes "a", "b"` */
export const named = (word: string, names: readonly string[]): string =>
  `${plural(names.length, word)} ${quoted(names)}`;

/** `pod and container "a"`; empty without offenders. */
export function settersOf({ pod, containers }: Offenders, ...more: readonly string[]): string {
  return [...(pod ? ['pod'] : []), ...(containers.length > 0 ? [named('container', containers)] : []), ...more].join(
    ' and ',
  );
}

/** The distinct values in the order of messages. */
export const sorted = (values: Iterable<string>): string[] => [...new Set(values)].sort();
