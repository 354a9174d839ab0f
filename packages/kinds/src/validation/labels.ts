import { fieldError, type LabelSelectorSpec, labelSelectorErrors, labelsErrors, qualifiedNameErrors } from '@keelson/core';
import type { Errors } from './checks.ts';

/** Keys and values of a map of labels; absent is fine. */
export function checkLabels(labels: Record<string, string> | undefined, path: string, errors: Errors): void {
  if (labels) errors.push(...labelsErrors(labels, path));
}

/** Keys, operators and values of a label selector; absent is fine. */
export function checkLabelSelector(selector: LabelSelectorSpec | undefined, path: string, errors: Errors): void {
  if (selector) errors.push(...labelSelectorErrors(selector, path));
}

/** True when the selector chooses nothing in particular: no labels and no expressions. */
export function isEmptySelector(selector: LabelSelectorSpec | undefined): boolean {
  if (!selector) return true;
  return !selector.matchExpressions?.length && Object.keys(selector.matchLabels ?? {}).length === 0;
}

/** Bytes that all keys and values of annotations may take together. */
const maxAnnotationBytes = 262144;

/** Keys and total size of annotations. Keys are compared without regard to case, so that is how their form is checked. */
export function checkAnnotations(annotations: Record<string, string> | undefined, path: string, errors: Errors): void {
  if (!annotations) return;
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    for (const detail of qualifiedNameErrors(key.toLowerCase())) errors.push(fieldError.invalid(path, key, detail));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxAnnotationBytes) errors.push(fieldError.tooLong(path, maxAnnotationBytes));
}
