import { UsageError } from '@keelson/core/internal';

/** The built-in admission plugins by their names in kube-apiserver. */
export const admissionPluginNames = [
  'NamespaceLifecycle',
  'ServiceAccount',
  'LimitRanger',
  'PodSecurity',
  'DefaultTolerationSeconds',
  'Priority',
  'RuntimeClass',
  'DefaultStorageClass',
  'StorageObjectInUseProtection',
  'PersistentVolumeClaimResize',
  'CertificateApproval',
  'CertificateSigning',
  'CertificateSubjectRestriction',
  'DefaultIngressClass',
  'TaintNodesByCondition',
  'NodeRestriction',
] as const;

/** @param option the option in the message. @throws UsageError for a name that is no built-in plugin */
export function checkPluginNames(names: readonly string[], option: string): void {
  const unknown = names.find((name) => !(admissionPluginNames as readonly string[]).includes(name));
  if (unknown !== undefined)
    throw new UsageError(`${option}: admission plugin "${unknown}" is unknown; use ${admissionPluginNames.join(', ')}`);
}
