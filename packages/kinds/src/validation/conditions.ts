import { type ConditionObject, fieldError, isFull, qualifiedNameErrors } from '@keelson/core';
import { checkUnique, type Errors, pushInvalid } from './checks.ts';

const statuses = ['False', 'True', 'Unknown'];
const reasonSource = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?';
const reason = new RegExp(`^${reasonSource}$`);
const reasonExamples = ['my_name', 'MY_NAME', 'MyName', 'ReasonA,ReasonB', 'ReasonA:ReasonB'];
const reasonText =
  'a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric ' +
  "characters or '_,:', and must end with an alphanumeric character or '_' " +
  `(e.g. ${reasonExamples.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${reasonSource}')`;
const maxReason = 1024;
const maxMessage = 32 * 1024;

/** Validates the conditions of a status that use the shared form. */
export function checkConditions(
  conditions: readonly ConditionObject[] | undefined,
  path: string,
  errors: Errors,
): void {
  const types = new Set<string>();
  for (const [i, condition] of (conditions ?? []).entries()) {
    if (isFull(errors)) return;
    const at = `${path}[${i}]`;
    checkUnique(condition.type, types, `${at}.type`, errors);
    pushInvalid(qualifiedNameErrors(condition.type), condition.type, `${at}.type`, errors);
    if (!statuses.includes(condition.status)) {
      errors.push(fieldError.notSupported(`${at}.status`, condition.status, statuses));
    }
    const { observedGeneration = 0 } = condition;
    if (observedGeneration < 0) {
      const detail = 'must be greater than or equal to zero';
      errors.push(fieldError.invalid(`${at}.observedGeneration`, observedGeneration, detail));
    }
    if (!condition.reason) errors.push(fieldError.required(`${at}.reason`));
    else if (!reason.test(condition.reason)) {
      errors.push(fieldError.invalid(`${at}.reason`, condition.reason, reasonText));
    }
    if (Buffer.byteLength(condition.reason) > maxReason) errors.push(fieldError.tooLong(`${at}.reason`, maxReason));
    if (Buffer.byteLength(condition.message) > maxMessage) errors.push(fieldError.tooLong(`${at}.message`, maxMessage));
  }
}
