import { addErrors, type FieldError, fieldError, isFull } from './field-error.ts';
import type { Labels } from './label-requirement.ts';
import type { LabelSelectorSpec } from './label-selector.ts';
import { labelKeyErrors, labelValueErrors } from './names.ts';

/** What is wrong with a map of labels that stands at `path`. */
export function labelsErrors(labels: Labels | null | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    if (isFull(errors)) break;
    for (const detail of labelKeyErrors(key)) errors.push(fieldError.invalid(path, key, detail));
    for (const detail of labelValueErrors(value)) errors.push(fieldError.invalid(path, value, detail));
  }
  return errors;
}

type Expression = NonNullable<LabelSelectorSpec['matchExpressions']>[number];

function checkExpression(expression: Expression, path: string, errors: FieldError[]): void {
  const values = expression.values ?? [];
  switch (expression.operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        errors.push(fieldError.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        errors.push(
          fieldError.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        );
      }
      break;
    default:
      errors.push(fieldError.invalid(`${path}.operator`, expression.operator, 'not a valid selector operator'));
  }
  for (const detail of labelKeyErrors(expression.key))
    errors.push(fieldError.invalid(`${path}.key`, expression.key, detail));
  for (const [index, value] of values.entries()) {
    if (isFull(errors)) return;
    for (const detail of labelValueErrors(value))
      errors.push(fieldError.invalid(`${path}.values[${index}]`, value, detail));
  }
}

/**
 * What is wrong with the JSON form of a label selector that stands at `path`. A selector without errors can be
 * compiled.
 */
export function labelSelectorErrors(spec: LabelSelectorSpec | null | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  addErrors(errors, labelsErrors(spec?.matchLabels, `${path}.matchLabels`));
  for (const [index, expression] of (spec?.matchExpressions ?? []).entries()) {
    if (isFull(errors)) break;
    checkExpression(expression, `${path}.matchExpressions[${index}]`, errors);
  }
  return errors;
}
