import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkText } from '../../../validation/checks.ts';
import type { ObjectFieldSelector, ResourceFieldSelector } from '../schema/index.ts';

const metadataPaths = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

/** Pod fields that environment variables can reference. Labels and annotations are referenced by key. */
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

/** Pod fields that files of downward API volumes can reference. */
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

/** Validates a reference to a field of the pod. */
export function checkFieldRef(
  ref: ObjectFieldSelector,
  supported: readonly string[],
  path: string,
  errors: Errors,
): void {
  checkText(ref.apiVersion, `${path}.apiVersion`, errors);
  if (ref.apiVersion && ref.apiVersion !== 'v1') {
    errors.push(fieldError.invalid(`${path}.apiVersion`, ref.apiVersion, 'only v1 is supported'));
  }
  if (!checkText(ref.fieldPath, `${path}.fieldPath`, errors)) return;
  const keyed = /^metadata\.(?:labels|annotations)\['[^']+'\]$/.test(ref.fieldPath);
  if (!keyed && !supported.includes(ref.fieldPath)) {
    errors.push(fieldError.notSupported(`${path}.fieldPath`, ref.fieldPath, supported));
  }
}

/** Validates a reference to a resource of a container. Only volumes must specify the container. */
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
