import { isIPv4 } from 'node:net';
import { fieldError, qualifiedNameErrors } from '@keelson/core';
import {
  checkIp,
  checkName,
  checkUnchanged,
  checkUnique,
  type Errors,
  pushInvalid,
} from '../../../validation/checks.ts';
import type { ContainerStatus, Pod, PodStatus } from '../schema/index.ts';

/**
 * Restores what a status write leaves out, as older agents do: the class and the observed generations. `podIP` and the
 * first of `podIPs` are the same address; where they differ, `podIP` counts.
 */
export function completePodStatus({ status }: Pod, old: Pod): void {
  if (!status) return;
  const before = old.status ?? {};
  if (!status.qosClass && before.qosClass) status.qosClass = before.qosClass;
  if (!status.observedGeneration && before.observedGeneration) status.observedGeneration = before.observedGeneration;
  const generations = new Map<string, (number | undefined)[]>();
  for (const { type, observedGeneration } of before.conditions ?? []) {
    const known = generations.get(type);
    if (known) known.push(observedGeneration);
    else generations.set(type, [observedGeneration]);
  }
  const taken = new Map<string, number>();
  for (const condition of status.conditions ?? []) {
    const index = taken.get(condition.type) ?? 0;
    taken.set(condition.type, index + 1);
    const generation = generations.get(condition.type)?.[index];
    if (!condition.observedGeneration && generation) condition.observedGeneration = generation;
  }
  const first = status.podIPs?.[0]?.ip;
  if (status.podIP && status.podIP !== first) status.podIPs = [{ ip: status.podIP }];
  else if (first) status.podIP = first;
}

/** Conditions whose types are not checked. */
const systemConditions: ReadonlySet<string> = new Set(['PodScheduled', 'Ready', 'Initialized']);
const negative = 'must be a non-negative integer';

/** Validates the status that an agent or a controller writes. */
export function checkPodStatusUpdate(pod: Pod, old: Pod, errors: Errors): void {
  const [status, before] = [pod.status ?? {}, old.status ?? {}];
  status.conditions?.forEach(({ type, observedGeneration = 0 }, i) => {
    const at = `status.conditions[${i}]`;
    if (observedGeneration < 0) {
      errors.push(fieldError.invalid(`${at}.observedGeneration`, observedGeneration, negative));
    }
    if (!systemConditions.has(type)) pushInvalid(qualifiedNameErrors(type), type, `${at}.Type`, errors);
  });
  if (status.nominatedNodeName !== before.nominatedNodeName) {
    checkName(status.nominatedNodeName, 'dns1123Subdomain', 'status.nominatedNodeName', errors);
  }
  const { observedGeneration = 0 } = status;
  if (observedGeneration < 0) {
    errors.push(fieldError.invalid('status.observedGeneration', observedGeneration, negative));
  }
  if ((status.qosClass ?? '') !== (before.qosClass ?? '')) {
    checkUnchanged(status.qosClass ?? '', before.qosClass ?? '', 'status.qosClass', errors);
  }
  checkTransitions(pod, old, errors);
  checkClaimStatuses(status, pod, errors);
  checkAddresses(status.podIPs, before.podIPs, 'status.podIPs', errors);
  checkHostAddresses(status, before, errors);
}

/** Rejects a status in which a container that has terminated permanently is running or waiting again. */
function checkTransitions({ status }: Pod, { spec, status: before }: Pod, errors: Errors): void {
  const sidecars = new Set<string>();
  for (const { name, restartPolicy } of spec.initContainers ?? []) if (restartPolicy === 'Always') sidecars.add(name);
  const check = (
    field: 'initContainerStatuses' | 'containerStatuses' | 'ephemeralContainerStatuses',
    mayRestart: (status: ContainerStatus) => boolean,
  ) => {
    const resumed = new Set<string>();
    for (const { name, state } of status?.[field] ?? []) if (!state?.terminated) resumed.add(name);
    before?.[field]?.forEach((ended, i) => {
      if (!ended.state?.terminated || !resumed.has(ended.name) || mayRestart(ended)) return;
      errors.push(
        fieldError.forbidden(`status.${field}[${i}].state`, 'may not be transitioned to non-terminated state'),
      );
    });
  };
  const restarts = ({ state }: ContainerStatus) =>
    spec.restartPolicy === 'Always' || (spec.restartPolicy === 'OnFailure' && state?.terminated?.exitCode !== 0);
  check('containerStatuses', restarts);
  check('initContainerStatuses', (ended) => restarts(ended) || sidecars.has(ended.name));
  check('ephemeralContainerStatuses', () => false);
}

function checkClaimStatuses({ resourceClaimStatuses: statuses }: PodStatus, { spec }: Pod, errors: Errors): void {
  if (!statuses?.length) return;
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const seen = new Set<string>();
  statuses.forEach(({ name, resourceClaimName }, i) => {
    const path = `status.resourceClaimStatuses[${i}].name`;
    if (!claims.has(name)) {
      errors.push(fieldError.invalid(path, name, 'must match the name of an entry in `spec.resourceClaims`'));
    }
    checkUnique(name, seen, path, errors);
    checkName(resourceClaimName, 'dns1123Subdomain', path, errors);
  });
}

type Addresses = readonly { readonly ip?: string }[] | undefined;

/** Requires at most one address of each family; addresses that were accepted before remain valid. */
function checkAddresses(addresses: Addresses, before: Addresses, path: string, errors: Errors): void {
  if (!addresses?.length) return;
  const known = new Set((before ?? []).map(({ ip }) => ip));
  const families = new Set<boolean>();
  addresses.forEach(({ ip = '' }, i) => {
    if (!known.has(ip)) checkIp(ip, `${path}[${i}]`, errors);
    families.add(isIPv4(ip));
  });
  if (addresses.length > 1 && families.size !== addresses.length) {
    // As Kubernetes shows them.
    const shown = addresses.map(({ ip }) => ({ IP: ip }));
    errors.push(fieldError.invalid(path, shown, 'may specify no more than one IP for each IP family'));
  }
}

function checkHostAddresses({ hostIP = '', hostIPs }: PodStatus, before: PodStatus, errors: Errors): void {
  const first = hostIPs?.[0]?.ip;
  if (first !== undefined && first !== hostIP) {
    errors.push(fieldError.invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`'));
  }
  checkAddresses(hostIPs, before.hostIPs, 'status.hostIPs', errors);
}
