import { type FieldError, fieldError, labelKeyErrors, labelValueErrors, qualifiedNameErrors } from '@keelson/core';
import { cidrWarnings } from '../../../validation/address-warnings.ts';
import {
  checkCidr,
  checkRequiredOneOf,
  checkText,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
  sameJson,
} from '../../../validation/checks.ts';
import { isNegativeAmount } from '../../../validation/quantities.ts';
import type { Node, Taint } from '../schema/index.ts';

/** Validates taints, pod CIDRs and resource amounts of a node. */
export function checkNode(node: Node): FieldError[] {
  const errors = newErrors();
  checkTaints(node.spec?.taints, 'spec.taints', errors);
  const ranges = node.spec?.podCIDRs ?? [];
  ranges.forEach((range, i) => {
    checkCidr(range, `spec.podCIDRs[${i}]`, errors);
  });
  if (ranges.length > 2)
    errors.push(fieldError.invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family'));
  if (ranges[0] !== undefined && node.spec?.podCIDR && node.spec.podCIDR !== ranges[0]) {
    errors.push(fieldError.invalid('spec.podCIDR', node.spec.podCIDR, 'must equal podCIDRs[0]'));
  }
  for (const field of ['capacity', 'allocatable'] as const) {
    for (const [name, amount] of Object.entries(node.status?.[field] ?? {})) {
      const path = `status.${field}[${name}]`;
      pushInvalid(qualifiedNameErrors(name), name, path, errors);
      if (isNegativeAmount(amount)) errors.push(fieldError.invalid(path, amount, 'must be greater than or equal to 0'));
    }
  }
  checkAddresses(node, errors);
  return errors;
}

function checkTaints(taints: readonly Taint[] | undefined, path: string, errors: Errors): void {
  const seen = new Set<string>();
  taints?.forEach((taint, i) => {
    const at = `${path}[${i}]`;
    if (checkText(taint.key, `${at}.key`, errors))
      pushInvalid(labelKeyErrors(taint.key), taint.key, `${at}.key`, errors);
    if (taint.value) pushInvalid(labelValueErrors(taint.value), taint.value, `${at}.value`, errors);
    checkRequiredOneOf(taint.effect, ['NoExecute', 'NoSchedule', 'PreferNoSchedule'], `${at}.effect`, errors);
    checkUnique(`${taint.key}:${taint.effect}`, seen, at, errors);
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

/** Rejects changes of pod CIDRs and provider id after they were set. */
export function checkNodeUpdate(node: Node, old: Node): FieldError[] {
  const errors = newErrors();
  if (old.spec?.podCIDRs?.length && !sameJson(node.spec?.podCIDRs, old.spec.podCIDRs)) {
    errors.push(fieldError.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (old.spec?.providerID && node.spec?.providerID !== old.spec.providerID) {
    errors.push(
      fieldError.forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'),
    );
  }
  return errors;
}

/** Warnings about removed fields and unusual forms of pod CIDRs. */
export function nodeWarnings({ spec }: Node): string[] {
  return [
    ...(spec?.configSource ? ['spec.configSource: the feature is removed'] : []),
    ...(spec?.externalID ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes'] : []),
    ...(spec?.podCIDRs ?? []).flatMap((range, i) => cidrWarnings(range, `spec.podCIDRs[${i}]`)),
  ];
}
