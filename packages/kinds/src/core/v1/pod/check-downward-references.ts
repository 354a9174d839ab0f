import { fieldError } from '@keelson/core';
import { checkText } from '../../../validation/checks.ts';
import type { Errors } from '../../../validation/errors.ts';
import type { ObjectFieldSelector, ResourceFieldSelector } from '../schema/index.ts';

const metadataPaths = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

/** Fields of its pod that an environment variable may show. Of labels and annotations, one key at a time. */
export const envFieldPaths: readonly string[] = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];

/** Fields of its pod that a file of a volume may show. */
export const volumeFieldPaths: readonly string[] = metadataPaths;

const containerResources = /^(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-.+)$/;
const resourceNames = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];
const cpuDivisors = ['1', '1m'];
const byteDivisors = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

/** A reference to a field of the pod itself. */
export function checkFieldRef(
  ref: ObjectFieldSelector,
  supported: readonly string[],
  path: string,
  errors: Errors,
): void {
  checkText(ref.apiVersion, `${path}.apiVersion`, errors);
  if (ref.apiVersion && ref.apiVersion !== 'v1') {
    errors.push(fieldError.invalid(`${path}.apiVersion`, ref.apiVersion, 'only v1 is known'));
  }
  if (!checkText(ref.fieldPath, `${path}.fieldPath`, errors)) return;
  const keyed = /^metadata\.(?:labels|annotations)\['[^']+'\]$/.test(ref.fieldPath);
  if (!keyed && !supported.includes(ref.fieldPath)) {
    errors.push(fieldError.notSupported(`${path}.fieldPath`, ref.fieldPath, supported));
  }
}

/** A reference to a resource of a container; only volumes have to say of which one. */
export function checkResourceFieldRef(
  ref: ResourceFieldSelector,
  inVolume: boolean,
  path: string,
  errors: Errors,
): void {
  if (inVolume) checkText(ref.containerName, `${path}.containerName`, errors);
  if (!checkText(ref.resource, `${path}.resource`, errors)) return;
  if (!containerResources.test(ref.resource)) {
    errors.push(fieldError.notSupported(`${path}.resource`, ref.resource, resourceNames));
    return;
  }
  const divisor = String(ref.divisor ?? '0');
  if (divisor === '0' || divisor === '') return;
  const divisors = ref.resource.endsWith('.cpu') ? cpuDivisors : byteDivisors;
  if (!divisors.includes(divisor)) errors.push(fieldError.notSupported(`${path}.divisor`, divisor, divisors));
}
