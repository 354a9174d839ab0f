import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkLabelSelector, checkText } from '../../../validation/checks.ts';
import { checkVolumeFilePath } from '../../../validation/paths.ts';
import type { ProjectedVolumeSource, VolumeProjection } from '../schema/index.ts';
import { checkDownwardFiles, checkKeyFiles, checkMode } from './check-volume-files.ts';

const names = [
  'secret',
  'downwardAPI',
  'configMap',
  'serviceAccountToken',
  'clusterTrustBundle',
  'podCertificate',
] as const;

/** Validates a projected volume: each source has exactly one type, and paths are unique. */
export function checkProjected(volume: ProjectedVolumeSource, path: string, errors: Errors): void {
  checkMode(volume.defaultMode, `${path}.defaultMode`, errors);
  const files = new Set<string>();
  volume.sources?.forEach((source, i) => {
    const at = `${path}.sources[${i}]`;
    const [first, ...others] = names.filter((name) => source[name] !== undefined);
    if (first === undefined) errors.push(fieldError.required(at, 'must specify a volume type'));
    for (const other of others) {
      errors.push(fieldError.forbidden(`${at}.${other}`, 'may not specify more than 1 volume type'));
    }
    checkSource(source, at, errors);
    for (const file of filesOf(source)) {
      if (files.has(file)) errors.push(fieldError.invalid(path, file, `conflicting duplicate paths`));
      files.add(file);
    }
  });
}

function filesOf(source: VolumeProjection): string[] {
  const items = [
    ...(source.secret?.items ?? []),
    ...(source.configMap?.items ?? []),
    ...(source.downwardAPI?.items ?? []),
  ];
  const paths = items.map((item) => item.path);
  if (source.serviceAccountToken) paths.push(source.serviceAccountToken.path);
  if (source.clusterTrustBundle) paths.push(source.clusterTrustBundle.path);
  return paths.filter((file) => file !== '' && file !== undefined);
}

function checkSource(source: VolumeProjection, path: string, errors: Errors): void {
  const {
    secret,
    configMap,
    downwardAPI,
    serviceAccountToken: token,
    clusterTrustBundle: bundle,
    podCertificate,
  } = source;
  if (secret) {
    checkText(secret.name, `${path}.secret.name`, errors);
    checkKeyFiles(secret.items, `${path}.secret.items`, errors);
  }
  if (configMap) {
    checkText(configMap.name, `${path}.configMap.name`, errors);
    checkKeyFiles(configMap.items, `${path}.configMap.items`, errors);
  }
  if (downwardAPI) checkDownwardFiles(downwardAPI.items, `${path}.downwardAPI.items`, errors);
  if (token) {
    const at = `${path}.serviceAccountToken`;
    if (checkText(token.path, `${at}.path`, errors)) checkVolumeFilePath(token.path, `${at}.path`, errors);
    const seconds = token.expirationSeconds ?? 3600;
    if (seconds < 600)
      errors.push(
        fieldError.invalid(`${at}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes'),
      );
    if (seconds > 2 ** 32) {
      errors.push(
        fieldError.invalid(`${at}.expirationSeconds`, seconds, 'may not specify a duration larger than 2^32 seconds'),
      );
    }
  }
  if (bundle) {
    const at = `${path}.clusterTrustBundle`;
    if (checkText(bundle.path, `${at}.path`, errors)) checkVolumeFilePath(bundle.path, `${at}.path`, errors);
    if (bundle.name && bundle.signerName) {
      errors.push(fieldError.invalid(at, bundle, 'only one of name and signerName may be used'));
    } else if (!bundle.name && !bundle.signerName) {
      errors.push(fieldError.required(at, 'either name or signerName must be specified'));
    }
    checkLabelSelector(bundle.labelSelector, `${at}.labelSelector`, errors);
  }
  if (podCertificate) {
    checkText(podCertificate.signerName, `${path}.podCertificate.signerName`, errors);
    checkText(podCertificate.keyType, `${path}.podCertificate.keyType`, errors);
  }
}
