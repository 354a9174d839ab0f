import {
  fieldError,
  type LabelSelectorSpec,
  labelKeyErrors,
  labelSelectorErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '@keelson/core';
import { type Errors, isFull } from './checks.ts';

/** Validates labels; absent labels are valid. */
export function checkLabels(labels: Record<string, string> | undefined, path: string, errors: Errors): void {
  for (const key in labels) {
    if (isFull(errors)) return;
    for (const detail of labelKeyErrors(key)) errors.push(fieldError.invalid(path, key, detail));
    for (const detail of labelValueErrors(labels[key] ?? ''))
      errors.push(fieldError.invalid(path, labels[key], detail));
  }
}

/** Validates a label selector; an absent selector is valid. */
export function checkLabelSelector(selector: LabelSelectorSpec | undefined, path: string, errors: Errors): void {
  for (const error of labelSelectorErrors(selector, path)) errors.push(error);
}

/** True for a selector without labels and expressions. */
export function isEmptySelector(selector: LabelSelectorSpec | undefined): boolean {
  if (!selector) return true;
  return !selector.matchExpressions?.length && Object.keys(selector.matchLabels ?? {}).length === 0;
}

/** Maximum total bytes of keys and values of annotations. */
const maxAnnotationBytes = 262144;

/** Validates keys and total size of annotations. The case of keys is ignored. */
export function checkAnnotations(annotations: Record<string, string> | undefined, path: string, errors: Errors): void {
  if (!annotations) return;
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    if (isFull(errors)) return;
    for (const detail of qualifiedNameErrors(key.toLowerCase())) errors.push(fieldError.invalid(path, key, detail));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxAnnotationBytes) errors.push(fieldError.tooLong(path, maxAnnotationBytes));
}
