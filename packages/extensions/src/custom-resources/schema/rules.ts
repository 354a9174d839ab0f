import type { FieldError, KubeObject } from '@keelson/core';
import type { JsonSchemaProps } from '@keelson/kinds';

/** Evaluates the rules (`x-kubernetes-validations`) of a schema for an object. */
export type RuleChecks = (object: KubeObject, old: KubeObject | undefined) => FieldError[];

/** @returns undefined for a schema without rules. */
export function ruleChecksOf(_schema: JsonSchemaProps): RuleChecks | undefined {
  return undefined;
}

/** Errors of the rules in a schema. */
export function checkRules(_schema: JsonSchemaProps, _path: string): FieldError[] {
  return [];
}
