import { dns1123LabelErrors, dns1123SubdomainErrors, fieldError } from '@keelson/core';
import { checkName, checkOneOf, checkText, type Errors, pushInvalid } from '../../../validation/checks.ts';
import { checkNoBackSteps } from '../../../validation/paths.ts';
import { isNegativeAmount } from '../../../validation/quantities.ts';
import {
  checkAccessModes,
  checkClassAndMode,
  checkDriverName,
  checkPositiveAmount,
} from '../../../validation/volumes.ts';
import { checkNodeSelectorTerm } from '../pod/check-scheduling.ts';
import { checkVolumeSource } from '../pod/check-volumes.ts';
import type {
  CSIPersistentVolumeSource,
  PersistentVolumeSource,
  PersistentVolumeSpec,
  SecretReference,
  Volume,
} from '../schema/index.ts';

/** Names of the source fields, in the order in which Kubernetes validates them. */
const sources = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
] as const satisfies readonly (keyof PersistentVolumeSource)[];

const inline = 'in the context of inline volumes';

/** The source of a volume, such as `nfs` or `csi`, without the other fields of its spec. */
export function sourceOfVolume(spec: PersistentVolumeSpec): PersistentVolumeSource {
  return Object.fromEntries(sources.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])));
}

/**
 * Validates the spec of a volume. `isInline` is true for the spec in a VolumeAttachment, which has no claim, class or
 * capacity.
 */
export function checkVolumeSpec(spec: PersistentVolumeSpec, isInline: boolean, path: string, errors: Errors): void {
  if (isInline) checkInline(spec, path, errors);
  checkAccessModes(spec.accessModes, `${path}.accessModes`, errors);
  if (!isInline) checkCapacity(spec.capacity ?? {}, `${path}.capacity`, errors);
  const { persistentVolumeReclaimPolicy: policy, nodeAffinity, hostPath, csi } = spec;
  if (!isInline) {
    checkOneOf(policy, ['Delete', 'Recycle', 'Retain'], `${path}.persistentVolumeReclaimPolicy`, errors);
    if (nodeAffinity) checkNodeAffinity(nodeAffinity, `${path}.nodeAffinity`, errors);
  }
  checkSources(spec, path, errors);
  if (hostPath && /^\/*$/.test(hostPath.path) && policy === 'Recycle') {
    const text = "may not be 'recycle' for a hostPath mount of '/'";
    errors.push(fieldError.forbidden(`${path}.persistentVolumeReclaimPolicy`, text));
  }
  if (!isInline) checkClassAndMode(spec, path, errors);
  const attributes = spec.volumeAttributesClassName;
  if (attributes === undefined) return;
  if (attributes === '') {
    errors.push(fieldError.required(`${path}.volumeAttributesClassName`, 'an empty string is disallowed'));
  } else checkName(attributes, 'dns1123Subdomain', `${path}.volumeAttributesClassName`, errors);
  if (!csi) errors.push(fieldError.required(`${path}.csi`, 'has to be specified when using volumeAttributesClassName'));
}

function checkInline(spec: PersistentVolumeSpec, path: string, errors: Errors): void {
  const forbid = (field: keyof PersistentVolumeSpec) =>
    errors.push(fieldError.forbidden(`${path}.${field}`, `may not be specified ${inline}`));
  if (spec.claimRef) forbid('claimRef');
  if (Object.keys(spec.capacity ?? {}).length > 0) forbid('capacity');
  if (!spec.csi) errors.push(fieldError.required(`${path}.csi`, `has to be specified ${inline}`));
  if (spec.persistentVolumeReclaimPolicy && spec.persistentVolumeReclaimPolicy !== 'Retain') {
    errors.push(fieldError.forbidden(`${path}.persistentVolumeReclaimPolicy`, `may only be Retain ${inline}`));
  }
  if (spec.nodeAffinity) forbid('nodeAffinity');
  if (spec.storageClassName) forbid('storageClassName');
  if (spec.volumeMode !== undefined && spec.volumeMode !== 'Filesystem') {
    const text = `may not specify volumeMode other than Filesystem ${inline}`;
    errors.push(fieldError.forbidden(`${path}.volumeMode`, text));
  }
}

function checkCapacity(capacity: Record<string, string>, path: string, errors: Errors): void {
  const amounts = Object.entries(capacity);
  if (amounts.length === 0) errors.push(fieldError.required(path));
  if (!Object.hasOwn(capacity, 'storage') || amounts.length > 1) {
    errors.push(fieldError.notSupported(path, capacity, ['storage']));
  }
  for (const [name, amount] of amounts) {
    if (isNegativeAmount(amount)) {
      errors.push(fieldError.invalid(`${path}[${name}]`, amount, 'must be a valid resource quantity'));
    }
    checkPositiveAmount(amount, `${path}[${name}]`, errors);
  }
}

function checkNodeAffinity(
  { required }: NonNullable<PersistentVolumeSpec['nodeAffinity']>,
  path: string,
  errors: Errors,
): void {
  if (!required) {
    errors.push(fieldError.required(`${path}.required`, 'must specify required node constraints'));
    return;
  }
  const terms = `${path}.required.nodeSelectorTerms`;
  if (required.nodeSelectorTerms.length === 0) {
    errors.push(fieldError.required(terms, 'must have at least one node selector term'));
  }
  required.nodeSelectorTerms.forEach((term, i) => {
    checkNodeSelectorTerm(term, `${terms}[${i}]`, errors);
  });
}

function checkSources(spec: PersistentVolumeSpec, path: string, errors: Errors): void {
  const given = sources.filter((name) => spec[name] !== undefined);
  const [first, ...more] = given;
  if (first === undefined) {
    errors.push(fieldError.required(path, 'must specify a volume type'));
    return;
  }
  for (const name of more) {
    errors.push(fieldError.forbidden(`${path}.${name}`, 'may not specify more than 1 volume type'));
  }
  const at = `${path}.${first}`;
  if (first === 'csi') checkCsi(spec.csi, at, errors);
  else if (first === 'local') {
    if (checkText(spec.local?.path, `${at}.path`, errors))
      checkNoBackSteps(spec.local?.path ?? '', `${at}.path`, errors);
    if (!spec.nodeAffinity) {
      errors.push(fieldError.required(`${path}.nodeAffinity`, 'Local volume requires node affinity'));
    }
    // All other sources have the same rules and, except for secrets, the same fields as in pods.
  } else checkVolumeSource({ name: 'volume', [first]: spec[first] } as Volume, first, at, errors);
}

const secretFields = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const;

function checkCsi(csi: CSIPersistentVolumeSource | undefined, path: string, errors: Errors): void {
  if (!csi) return;
  checkDriverName(csi.driver, `${path}.driver`, errors);
  checkText(csi.volumeHandle, `${path}.volumeHandle`, errors);
  for (const field of secretFields) checkSecretReference(csi[field], `${path}.${field}`, errors);
}

function checkSecretReference(reference: SecretReference | undefined, path: string, errors: Errors): void {
  if (!reference) return;
  const { name, namespace } = reference;
  if (checkText(name, `${path}.name`, errors)) pushInvalid(dns1123SubdomainErrors(name), name, `${path}.name`, errors);
  if (checkText(namespace, `${path}.namespace`, errors)) {
    pushInvalid(dns1123LabelErrors(namespace), namespace, `${path}.namespace`, errors);
  }
}
