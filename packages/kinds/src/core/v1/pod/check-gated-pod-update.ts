import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { sameJson } from '../../../validation/checks.ts';
import type { Affinity, NodeSelectorTerm, PodSpec } from '../schema/index.ts';

/**
 * Validates the additional changes that are allowed while a pod has scheduling gates: removal of gates, restriction of
 * node selectors and of required node affinity, any change of preferred node affinity. Returns the old values of these
 * fields, which the caller excludes from its comparison.
 */
export function checkGatedPodUpdate(spec: PodSpec, old: PodSpec, errors: Errors): Partial<PodSpec> {
  const gates = new Set((old.schedulingGates ?? []).map((gate) => gate.name));
  for (const gate of spec.schedulingGates ?? []) {
    if (gates.has(gate.name)) continue;
    const detail = `only deletion is allowed, but found new scheduling gate '${gate.name}'`;
    errors.push(fieldError.forbidden('spec.schedulingGates', detail));
  }
  const judged: Record<string, unknown> = { schedulingGates: old.schedulingGates };
  if (gates.size === 0) return judged as Partial<PodSpec>;
  checkNodeSelector(spec.nodeSelector ?? {}, old.nodeSelector ?? {}, errors);
  checkNodeAffinity(spec, old, errors);
  const affinity = withNodeAffinity(spec.affinity, old.affinity);
  return { ...judged, nodeSelector: old.nodeSelector, affinity } as unknown as Partial<PodSpec>;
}

/** The new affinity with the old node affinity. Without others it equals an absent one when there was none. */
function withNodeAffinity(affinity: Affinity | undefined, old: Affinity | undefined): Affinity | undefined {
  if (!affinity && !old?.nodeAffinity) return undefined;
  if (!old && !affinity?.podAffinity && !affinity?.podAntiAffinity) return undefined;
  const { nodeAffinity: _, ...rest } = affinity ?? {};
  return { ...rest, ...(old?.nodeAffinity ? { nodeAffinity: old.nodeAffinity } : {}) };
}

function checkNodeSelector(selector: Record<string, string>, old: Record<string, string>, errors: Errors): void {
  const kept = Object.entries(old).every(([key, value]) => Object.hasOwn(selector, key) && selector[key] === value);
  if (!kept)
    errors.push(
      fieldError.invalid(
        'spec.nodeSelector',
        selector,
        'only additions to spec.nodeSelector are allowed (no mutations or deletions)',
      ),
    );
}

function checkNodeAffinity(spec: PodSpec, old: PodSpec, errors: Errors): void {
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  const before = old.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (!before) return;
  const now = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  if (now.length !== before.length) {
    errors.push(
      fieldError.invalid(
        path,
        now.length > 0 ? now : null,
        'no additions/deletions to non-empty NodeSelectorTerms list are allowed',
      ),
    );
    return;
  }
  now.forEach((term, i) => {
    const was = before[i];
    if (was && !narrows(term, was)) {
      errors.push(fieldError.invalid(`${path}[${i}]`, term, 'only additions are allowed (no mutations or deletions)'));
    }
  });
}

/** True when `term` contains all requirements of `was`. An empty term matches nothing and must stay empty. */
function narrows(term: NodeSelectorTerm, was: NodeSelectorTerm): boolean {
  const starts = (list: readonly unknown[] | undefined, prefix: readonly unknown[] | undefined) =>
    (prefix ?? []).every((item, i) => sameJson(item, list?.[i]));
  const empty = !was.matchExpressions?.length && !was.matchFields?.length;
  if (empty) return !term.matchExpressions?.length && !term.matchFields?.length;
  return starts(term.matchExpressions, was.matchExpressions) && starts(term.matchFields, was.matchFields);
}
