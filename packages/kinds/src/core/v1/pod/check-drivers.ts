import { fieldError } from '@keelson/core';
import {
  checkAnnotations,
  checkLabels,
  checkName,
  checkOneOf,
  checkRange,
  type Errors,
} from '../../../validation/checks.ts';
import { checkDriverName } from '../../../validation/volumes.ts';
import type { EphemeralVolumeSource, Volume } from '../schema/index.ts';
import { checkClaimSpec } from '../volume-claim/check-claim-spec.ts';

type Source<Name extends keyof Volume> = NonNullable<Volume[Name]>;

const iscsiNames: readonly (readonly [string, RegExp])[] = [
  ['iqn', /^iqn\.\d{4}-\d{2}\.[0-9A-Za-z\-.]+:[^,;*&$|\s]+$/],
  ['eui', /^eui.[0-9A-Za-z]{16}$/],
  ['naa', /^naa.[0-9A-Za-z]{32}$/],
];

function checkIscsiName(value: string, path: string, errors: Errors): void {
  const form = iscsiNames.find(([prefix]) => value.startsWith(prefix));
  if (form?.[1].test(value)) return;
  errors.push(fieldError.invalid(path, value, `must be valid format${form ? '' : ' starting with iqn, eui, or naa'}`));
}

export function checkIscsi(source: Source<'iscsi'>, path: string, errors: Errors): void {
  if (source.iqn) checkIscsiName(source.iqn, `${path}.iqn`, errors);
  checkRange(source.lun, 0, 255, `${path}.lun`, errors);
  if ((source.chapAuthDiscovery || source.chapAuthSession) && !source.secretRef) {
    errors.push(fieldError.required(`${path}.secretRef`));
  }
  const initiator = source.initiatorName;
  // Kubernetes writes this name in lower case.
  if (initiator !== undefined) checkIscsiName(initiator, `${path}.initiatorname`, errors);
}

const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';

export function checkAzureDisk(source: Source<'azureDisk'>, path: string, errors: Errors): void {
  const { cachingMode, kind, diskURI } = source;
  checkOneOf(cachingMode, ['None', 'ReadOnly', 'ReadWrite'], `${path}.cachingMode`, errors);
  if (kind === undefined) return;
  checkOneOf(kind, ['Dedicated', 'Managed', 'Shared'], `${path}.kind`, errors);
  const [start, form] = kind === 'Managed' ? ['/subscriptions/', managedDisk] : ['https://', blobDisk];
  if (!diskURI.startsWith(start)) errors.push(fieldError.notSupported(`${path}.diskURI`, diskURI, [form]));
}

/** Reserves options in the namespaces of Kubernetes. */
export function checkFlexVolume({ options }: Source<'flexVolume'>, path: string, errors: Errors): void {
  for (const key in options) {
    const slash = key.indexOf('/');
    const namespace = `.${(slash < 0 ? key : key.slice(0, slash)).toLowerCase()}`;
    if (!namespace.endsWith('.kubernetes.io') && !namespace.endsWith('.k8s.io')) continue;
    const detail = 'kubernetes.io and k8s.io namespaces are reserved';
    errors.push(fieldError.invalid(`${path}.options[${key}]`, key, detail));
  }
}

export function checkCsi({ driver, nodePublishSecretRef }: Source<'csi'>, path: string, errors: Errors): void {
  checkDriverName(driver, `${path}.driver`, errors);
  if (!nodePublishSecretRef) return;
  const { name } = nodePublishSecretRef;
  if (name) checkName(name, 'dns1123Subdomain', `${path}.name`, errors);
  else errors.push(fieldError.required(`${path}.nodePublishSecretRef.name`));
}

/** Validates the template of a claim that is created for a pod. Of its metadata, labels and annotations are used. */
export function checkEphemeralVolume(source: EphemeralVolumeSource, path: string, errors: Errors): void {
  const template = source.volumeClaimTemplate;
  if (!template) {
    errors.push(fieldError.required(`${path}.volumeClaimTemplate`));
    return;
  }
  const at = `${path}.volumeClaimTemplate`;
  const { labels, annotations, ...others } = template.metadata ?? {};
  checkAnnotations(annotations, `${at}.metadata.annotations`, errors);
  checkLabels(labels, `${at}.metadata.labels`, errors);
  for (const [field, value] of Object.entries(others)) {
    if (value === undefined || value === '' || value === null) continue;
    errors.push(fieldError.forbidden(`${at}.metadata.${field}`, 'cannot be set'));
  }
  checkClaimSpec(template.spec ?? {}, `${at}.spec`, errors);
}
