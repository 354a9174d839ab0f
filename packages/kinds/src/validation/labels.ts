import {
  fieldError,
  type LabelSelectorSpec,
  labelKeyErrors,
  labelSelectorErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '@keelson/core';
import { type Errors, isFull } from './errors.ts';

/** Keys and values of a map of labels; absent is fine. */
export function checkLabels(labels: Record<string, string> | undefined, path: string, errors: Errors): void {
  for (const key in labels) {
    if (isFull(errors)) return;
    for (const detail of labelKeyErrors(key)) errors.push(fieldError.invalid(path, key, detail));
    for (const detail of labelValueErrors(labels[key] ?? ''))
      errors.push(fieldError.invalid(path, labels[key], detail));
  }
}

/** Keys, operators and values of a label selector; absent is fine. */
export function checkLabelSelector(selector: LabelSelectorSpec | undefined, path: string, errors: Errors): void {
  for (const error of labelSelectorErrors(selector, path)) errors.push(error);
}

/** True when the selector chooses nothing in particular: no labels and no expressions. */
export function isEmptySelector(selector: LabelSelectorSpec | undefined): boolean {
  if (!selector) return true;
  return !selector.matchExpressions?.length && Object.keys(selector.matchLabels ?? {}).length === 0;
}

/** Bytes that all keys and values of annotations may take together. */
const maxAnnotationBytes = 262144;

/**
 * Keys and total size of annotations. Keys are compared without regard to case, so that is how their form is checked.
 */
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
