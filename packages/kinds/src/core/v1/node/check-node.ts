import { type FieldError, fieldError, labelKeyErrors, labelValueErrors } from '@keelson/core';
import { cidrWarnings } from '../../../validation/address-warnings.ts';
import {
  checkCidr,
  checkRequiredOneOf,
  type Errors,
  newErrors,
  pushInvalid,
  sameJson,
} from '../../../validation/checks.ts';
import { checkResourceAmount } from '../../../validation/resource-names.ts';
import type { Node, Taint } from '../schema/index.ts';

/** Validates taints, pod CIDRs and resource amounts of a node. */
export function checkNode(node: Node): FieldError[] {
  const errors = newErrors();
  // Kubernetes names the taints by this path.
  checkTaints(node.spec?.taints, 'metadata.taints', errors);
  checkResources(node, errors);
  const ranges = node.spec?.podCIDRs ?? [];
  const cidrs = ranges.map((range, i) => checkCidr(range, `spec.podCIDRs[${i}]`, errors));
  const isOfOneFamily = new Set(cidrs.map((cidr) => cidr?.bytes.length)).size < ranges.length;
  if (ranges.length > 2 || isOfOneFamily)
    errors.push(fieldError.invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family'));
  return errors;
}

function checkResources(node: Node, errors: Errors): void {
  for (const field of ['capacity', 'allocatable'] as const) {
    for (const [name, amount] of Object.entries(node.status?.[field] ?? {}))
      checkResourceAmount(name, amount, `status.${field}.${name}`, errors);
  }
}

function checkTaints(taints: readonly Taint[] | undefined, path: string, errors: Errors): void {
  const seen = new Set<string>();
  taints?.forEach((taint, i) => {
    const at = `${path}[${i}]`;
    pushInvalid(labelKeyErrors(taint.key), taint.key, `${at}.key`, errors);
    if (taint.value) pushInvalid(labelValueErrors(taint.value), taint.value, `${at}.value`, errors);
    checkRequiredOneOf(taint.effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], `${at}.effect`, errors);
    const key = `${taint.key}:${taint.effect}`;
    if (seen.has(key)) {
      const { message, ...error } = fieldError.duplicate(at, taint);
      errors.push({ ...error, message: `${message}: taints must be unique by key and effect pair` });
    }
    seen.add(key);
  });
}

function checkAddresses(node: Node, errors: Errors): void {
  const seen = new Set<string>();
  node.status?.addresses?.forEach((address, i) => {
    const key = `${address.type}/${address.address}`;
    if (seen.has(key)) errors.push(fieldError.duplicate(`status.addresses[${i}]`, address));
    seen.add(key);
  });
}

/** Validates a status write, which may change the addresses. */
export function checkNodeStatus(node: Node): FieldError[] {
  const errors = newErrors();
  checkResources(node, errors);
  checkAddresses(node, errors);
  return errors;
}

/** Rejects repeated addresses, and changes of pod CIDRs, provider id and external id after they were set. */
export function checkNodeUpdate(node: Node, old: Node): FieldError[] {
  const errors = newErrors();
  checkAddresses(node, errors);
  if (old.spec?.podCIDRs?.length && !sameJson(node.spec?.podCIDRs, old.spec.podCIDRs)) {
    errors.push(fieldError.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (old.spec?.providerID && node.spec?.providerID !== old.spec.providerID) {
    errors.push(
      fieldError.forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'),
    );
  }
  if ((node.spec?.externalID ?? '') !== (old.spec?.externalID ?? '')) {
    errors.push(fieldError.forbidden('spec.externalID', 'may not be updated'));
  }
  return errors;
}

/** Warnings about unused fields and unusual forms of pod CIDRs. `configSource` has none: the agent implements it. */
export function nodeWarnings({ spec }: Node): string[] {
  return [
    ...(spec?.externalID ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes'] : []),
    ...(spec?.podCIDRs ?? []).flatMap((range, i) => cidrWarnings(range, `spec.podCIDRs[${i}]`)),
  ];
}
