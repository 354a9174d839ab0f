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

/** Validates a projected volume: each source has at most one type, and paths are unique. */
export function checkProjected(volume: ProjectedVolumeSource, path: string, errors: Errors): void {
  checkMode(volume.defaultMode, `${path}.defaultMode`, errors);
  const files = new Set<string>();
  volume.sources?.forEach((source, i) => {
    const at = `${path}.sources[${i}]`;
    checkSource(source, path, at, errors);
    for (const [file = '', shown] of filesOf(source)) {
      if (files.has(file)) errors.push(fieldError.invalid(path, shown, 'conflicting duplicate paths'));
      files.add(file);
    }
    if (names.filter((name) => source[name] !== undefined).length > 1) {
      errors.push(fieldError.forbidden(at, 'may not specify more than 1 volume type per source'));
    }
  });
}

const certificatePaths = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;

/** A file of a source, and the value that a message about a repeated path shows. */
type File = readonly [path: string | undefined, shown: string | undefined];

function filesOf({ secret, configMap, downwardAPI, clusterTrustBundle: bundle, podCertificate }: VolumeProjection) {
  const files: File[] = [
    ...(secret?.items ?? []).map(({ path }): File => [path, secret?.name ?? '']),
    ...(configMap?.items ?? []).map(({ path }): File => [path, configMap?.name ?? '']),
    ...(downwardAPI?.items ?? []).map(({ path }): File => [path, path]),
    [bundle?.path, bundle?.path],
    ...certificatePaths.map((field): File => [podCertificate?.[field], podCertificate?.[field]]),
  ];
  return files.filter(([path]) => path);
}

function checkSource(source: VolumeProjection, volumePath: string, path: string, errors: Errors): void {
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
    // Kubernetes names the volume here, not the source.
    const file = `${volumePath}.path`;
    if (checkText(token.path, file, errors)) checkVolumeFilePath(token.path, file, errors);
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
