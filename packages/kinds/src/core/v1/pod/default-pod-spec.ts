import { canonicalQuantity, quantityMilliValue } from '@keelson/core';
import { unlessMalformed } from '../../../validation/quantities.ts';
import type { Container, EphemeralContainer, HTTPGetAction, PodSpec, Probe } from '../schema/index.ts';
import { defaultVolume } from './default-volume.ts';
import { defaultPodResources } from './resources.ts';

/**
 * Sets the defaults of the spec of a pod or of a pod template: see docs/reference/api-rules.md#defaults-of-kinds.
 * Idempotent.
 */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ||= 'Always';
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.schedulerName ||= 'default-scheduler';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.securityContext ??= {};
  mirrorServiceAccount(spec);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of spec.initContainers ?? []) defaultContainer(container);
  for (const container of spec.containers ?? []) defaultContainer(container);
  for (const container of spec.ephemeralContainers ?? []) defaultContainer(container);
}

/** Sets the defaults of pods that do not apply to pod templates. */
export function defaultPodOnly(spec: PodSpec): void {
  spec.enableServiceLinks ??= true;
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (spec.hostNetwork) for (const port of container.ports ?? []) port.hostPort ||= port.containerPort;
    const limits = container.resources?.limits;
    if (!limits || !container.resources) continue;
    const requests = container.resources.requests ?? {};
    for (const [name, limit] of Object.entries(limits)) if (!Object.hasOwn(requests, name)) requests[name] = limit;
    if (Object.keys(requests).length > 0) container.resources.requests = requests;
  }
  defaultPodResources(spec);
}

/** Sets `serviceAccount`, the deprecated name of `serviceAccountName`, and vice versa. */
function mirrorServiceAccount(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount;
  if (!name) return;
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
}

/** Sets the defaults of one container: see docs/reference/api-rules.md#defaults-of-kinds. */
export function defaultContainer(container: Container | EphemeralContainer): void {
  container.imagePullPolicy ||= pullPolicyOf(container.image ?? '');
  container.terminationMessagePath ||= '/dev/termination-log';
  container.terminationMessagePolicy ||= 'File';
  container.resources ??= {};
  roundUp(container.resources.limits);
  roundUp(container.resources.requests);
  if (container.securityContext?.procMount === '') delete container.securityContext.procMount;
  for (const port of container.ports ?? []) port.protocol ||= 'TCP';
  for (const variable of container.env ?? []) {
    const ref = variable.valueFrom?.fieldRef;
    if (ref) ref.apiVersion ||= 'v1';
    const resource = variable.valueFrom?.resourceFieldRef;
    if (resource) resource.divisor ??= '0';
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe])
    if (probe) defaultProbe(probe);
  for (const handler of [container.lifecycle?.postStart, container.lifecycle?.preStop]) {
    if (handler?.httpGet) defaultHttpGet(handler.httpGet);
  }
}

/** Rounds amounts up to thousandths. Canonical texts of smaller fractions end in `u` or `n`. */
function roundUp(amounts: Record<string, string> | undefined): void {
  for (const name in amounts) {
    const amount = amounts[name] ?? '';
    if (!amount.endsWith('u') && !amount.endsWith('n')) continue;
    const milli = unlessMalformed(() => quantityMilliValue(amount));
    if (milli !== undefined) amounts[name] = canonicalQuantity(`${milli}m`);
  }
}

/** The default pull policy: `Always` for `:latest` and images without tag, otherwise `IfNotPresent`. */
function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  const at = image.indexOf('@');
  const name = at < 0 ? image : image.slice(0, at);
  const last = name.slice(name.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  const tag = colon < 0 ? '' : last.slice(colon + 1);
  return tag === 'latest' || (tag === '' && at < 0) ? 'Always' : 'IfNotPresent';
}

/** Zero means "unset" for these numbers. */
function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  if (probe.httpGet) defaultHttpGet(probe.httpGet);
  if (probe.grpc) probe.grpc.service ??= '';
}

function defaultHttpGet(action: HTTPGetAction): void {
  action.path ||= '/';
  action.scheme ||= 'HTTP';
}

/** Calls `visit` with all containers and their paths. */
export function eachContainer(
  spec: PodSpec,
  path: string,
  visit: (container: Container | EphemeralContainer, path: string) => void,
): void {
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    spec[list]?.forEach((container: Container | EphemeralContainer, i: number) => {
      visit(container, `${path}.${list}[${i}]`);
    });
  }
}
