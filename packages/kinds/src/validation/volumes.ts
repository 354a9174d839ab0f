import { dns1123SubdomainErrors, fieldError } from '@keelson/core';
import { checkName, checkOneOf, checkText, type Errors, pushInvalid } from './checks.ts';
import { compareAmounts } from './quantities.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

/** Validates the access modes of a volume or a claim, of which there must be one. */
export function checkAccessModes(modes: readonly string[] = [], path: string, errors: Errors, detail?: string): void {
  if (modes.length === 0) errors.push(fieldError.required(path, detail));
  for (const mode of modes) {
    if (!accessModes.includes(mode)) errors.push(fieldError.notSupported(path, mode, accessModes));
  }
  if (
    modes.includes('ReadWriteOncePod') &&
    modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))
  ) {
    errors.push(fieldError.forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
}

/** Validates class and mode of a volume or a claim. */
export function checkClassAndMode(
  spec: { readonly storageClassName?: string; readonly volumeMode?: string },
  path: string,
  errors: Errors,
): void {
  checkName(spec.storageClassName, 'dns1123Subdomain', `${path}.storageClassName`, errors);
  checkOneOf(spec.volumeMode, ['Block', 'Filesystem'], `${path}.volumeMode`, errors);
}

/** Requires the name of a CSI driver: a domain in any case, of at most 63 characters. */
export function checkDriverName(driver: string, path: string, errors: Errors): void {
  checkText(driver, path, errors);
  if (Buffer.byteLength(driver) > 63) errors.push(fieldError.tooLong(path, 63));
  pushInvalid(dns1123SubdomainErrors(driver.toLowerCase()), driver, path, errors);
}

/** Rejects amounts that are not greater than zero. */
export function checkPositiveAmount(amount: string, path: string, errors: Errors): boolean {
  if ((compareAmounts(amount, '0') ?? 1) > 0) return true;
  errors.push(fieldError.invalid(path, amount, 'must be greater than zero'));
  return false;
}

const shortModes: readonly (readonly [string, string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

/** Access modes in a table cell. */
export function accessModesText(modes: readonly string[] = []): string {
  return shortModes.flatMap(([mode, short]) => (modes.includes(mode) ? [short] : [])).join(',');
}

interface WithClass {
  readonly metadata?: { readonly annotations?: Record<string, string> };
  readonly spec?: { readonly storageClassName?: string };
}

/** The annotation that named the class before there was a field. */
export const betaClassAnnotation = 'volume.beta.kubernetes.io/storage-class';
export const betaClassAdvice = 'deprecated since v1.8; use "storageClassName" attribute instead';
/** The annotation that named mount options before there was a field. */
export const mountOptionsAnnotation = 'volume.beta.kubernetes.io/mount-options';

/** The class of a volume or a claim. */
export function storageClassOf({ metadata, spec }: WithClass): string {
  return metadata?.annotations?.[betaClassAnnotation] ?? spec?.storageClassName ?? '';
}
