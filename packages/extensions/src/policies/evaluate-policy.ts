import { type AdmissionExpression, evaluateAdmission, OutOfBudget } from '../admission/expressions.ts';
import { CostBudget, typeNameOf } from '../cel/index.ts';
import { type CompiledPolicy, type CompiledValidation, PolicyVariables } from './compiled-policy.ts';

/** A failed validation, or an evaluation error that counts as a failed validation. */
export interface Violation {
  /** Index of the validation in the policy. */
  readonly index: number;
  readonly message: string;
  readonly reason: string;
}

export interface PolicyResult {
  readonly violations: readonly Violation[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Errors of audit annotations. They deny the request regardless of the actions of the binding. */
  readonly annotationErrors: readonly string[];
}

const nothing: PolicyResult = { violations: [], annotations: [], annotationErrors: [] };
const longestMessage = 5 * 1024;
const longestAnnotation = 10 * 1024;

type Bindings = Readonly<Record<string, unknown>>;

/** Evaluates a policy with one parameter object. `bindings` contain the CEL variables except `variables`. */
export async function evaluatePolicy(policy: CompiledPolicy, bindings: Bindings): Promise<PolicyResult> {
  const failure = (message: string, index = 0): Violation[] =>
    policy.ignoreFailure ? [] : [{ index, message, reason: 'Invalid' }];
  const { matches, error } = await policy.conditions.match(bindings);
  if (error !== undefined) return { ...nothing, violations: failure(error) };
  if (!matches) return nothing;
  const violations: Violation[] = [];
  const budget = new CostBudget();
  const values = { ...bindings, variables: new PolicyVariables(policy, bindings, budget) };
  try {
    for (const [index, validation] of policy.validations.entries()) {
      const result = await evaluateAdmission(validation.expression, values, budget);
      if ('error' in result) violations.push(...failure(result.error, index));
      else if (result.value !== true) {
        const message = await messageOf(validation, values, budget);
        violations.push({ index, message, reason: validation.reason });
      }
    }
    const { annotations, errors } = await annotationsOf(policy, bindings);
    return { violations, annotations, annotationErrors: policy.ignoreFailure ? [] : errors };
  } catch (error) {
    if (error instanceof OutOfBudget) return { ...nothing, violations: failure(error.message) };
    throw error;
  }
}

async function messageOf(
  { expression, message, messageExpression }: CompiledValidation,
  values: Bindings,
  budget: CostBudget,
): Promise<string> {
  const own = message === '' ? `failed expression: ${expression.source.trim()}` : message;
  if (messageExpression === undefined) return own;
  const result = await evaluateAdmission(messageExpression, values, budget);
  const text = 'value' in result && typeof result.value === 'string' ? result.value.trim() : '';
  return text === '' || text.includes('\n') || Buffer.byteLength(text) > longestMessage ? own : text;
}

async function annotationsOf(
  policy: CompiledPolicy,
  bindings: Bindings,
): Promise<{ annotations: { key: string; value: string }[]; errors: string[] }> {
  const annotations: { key: string; value: string }[] = [];
  const errors: string[] = [];
  const budget = new CostBudget();
  const values = { ...bindings, variables: new PolicyVariables(policy, bindings, budget) };
  for (const { key, expression } of policy.annotations) {
    const text = await annotationText(expression, values, budget);
    if ('error' in text) errors.push(text.error);
    else if (text.value !== '') annotations.push({ key, value: text.value });
  }
  return { annotations, errors };
}

async function annotationText(
  expression: AdmissionExpression,
  values: Bindings,
  budget: CostBudget,
): Promise<{ value: string } | { error: string }> {
  const result = await evaluateAdmission(expression, values, budget);
  if ('error' in result) return result;
  const { value } = result;
  if (value === null) return { value: '' };
  if (typeof value === 'string') return { value: value.trim().slice(0, longestAnnotation) };
  const what = `valueExpression '${expression.source}' resulted in unsupported return type: ${typeNameOf(value)}`;
  return { error: `${what}. Return type must be either string or null.` };
}
