import { fieldError, type LabelSelectorSpec, labelKeyErrors } from '@keelson/core';
import { type Errors, pushInvalid } from '../../../validation/checks.ts';
import type { Pod } from '../schema/index.ts';

/** A spread constraint or a term of a pod affinity. */
interface Keyed {
  labelSelector?: LabelSelectorSpec;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

/** Adds the values that a new pod has for the keys of its constraints and affinities to their selectors. */
export function mergeLabelKeys({ metadata, spec }: Pod): void {
  const labels = metadata?.labels ?? {};
  for (const constraint of spec.topologySpreadConstraints ?? []) merge(constraint, labels);
  for (const affinity of [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity]) {
    for (const term of affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) merge(term, labels);
    for (const { podAffinityTerm } of affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
      merge(podAffinityTerm, labels);
    }
  }
}

function merge(keyed: Keyed, labels: Record<string, string>): void {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = keyed;
  if (!labelSelector || matchLabelKeys.length + mismatchLabelKeys.length === 0) return;
  const expressions = (keys: readonly string[], operator: string) =>
    keys.flatMap((key) => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    });
  const added = [...expressions(matchLabelKeys, 'In'), ...expressions(mismatchLabelKeys, 'NotIn')];
  if (added.length === 0) return;
  keyed.labelSelector = { ...labelSelector, matchExpressions: [...(labelSelector.matchExpressions ?? []), ...added] };
}

/** Validates the keys of a constraint or term, whose selector may contain those that {@link mergeLabelKeys} added. */
export function checkLabelKeys(keyed: Keyed, path: string, errors: Errors): void {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = keyed;
  if (matchLabelKeys.length + mismatchLabelKeys.length === 0) return;
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    const keys = keyed[field] ?? [];
    if (keys.length > 0 && !labelSelector) {
      errors.push(fieldError.forbidden(`${path}.${field}`, 'must not be specified when labelSelector is not set'));
    } else {
      keys.forEach((key, i) => {
        pushInvalid(labelKeyErrors(key), key, `${path}.${field}[${i}]`, errors);
      });
    }
  }
  const indexes = new Map(matchLabelKeys.map((key, i) => [key, i]));
  const selected = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const index = indexes.get(key);
    // Kubernetes names no field between the path and the index.
    if (index !== undefined && selected.has(key)) {
      errors.push(fieldError.invalid(`${path}[${index}]`, key, 'exists in both matchLabelKeys and labelSelector'));
    }
    selected.add(key);
  }
  const mismatched = new Set(mismatchLabelKeys);
  matchLabelKeys.forEach((key, i) => {
    if (!mismatched.has(key)) return;
    const detail = 'exists in both matchLabelKeys and mismatchLabelKeys';
    errors.push(fieldError.invalid(`${path}.matchLabelKeys[${i}]`, key, detail));
  });
}
