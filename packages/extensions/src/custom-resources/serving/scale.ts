import { type FieldError, fieldError, type KubeObject, type SubresourceDefinition } from '@keelson/core';
import { type AnyObject, copyJson, isJsonObject, setOwn } from '@keelson/core/internal';
import { type CustomResourceDefinitionVersion, type Scale, ScaleSchema, scaleMetadata } from '@keelson/kinds';

/** The paths of the scale fields in a version. */
type ScalePaths = NonNullable<NonNullable<CustomResourceDefinitionVersion['subresources']>['scale']>;

const bodyKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' } as const;
const maxInt32 = 2 ** 31 - 1;

const stepsOf = (path: string) => path.replace(/^\./, '').split('.');

function valueAt(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const step of stepsOf(path)) value = isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  return value;
}

function numberAt(object: unknown, path: string): number {
  const value = valueAt(object, path);
  return typeof value === 'number' ? value : 0;
}

function setAt(object: AnyObject, path: string, value: unknown): void {
  const steps = stepsOf(path);
  let target: Record<string, unknown> = object;
  for (const step of steps.slice(0, -1)) {
    const next = Object.hasOwn(target, step) ? target[step] : undefined;
    const copy: Record<string, unknown> = isJsonObject(next) ? copyJson(next) : {};
    setOwn(target, step, copy);
    target = copy;
  }
  setOwn(target, steps.at(-1) ?? '', value);
}

/** Errors of the replicas and the selector of an object. Source: `customresource/validator.go`. */
export function scaleErrors(
  { specReplicasPath, statusReplicasPath, labelSelectorPath }: ScalePaths,
  object: KubeObject,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const path of [specReplicasPath, statusReplicasPath]) {
    const value = valueAt(object, path);
    if (value === undefined) continue;
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      const detail = `${path} accessor error: ${JSON.stringify(value)} is of the type ${goType(value)}, expected int64`;
      errors.push(fieldError.invalid(path, 0, detail));
    } else if (value < 0) errors.push(fieldError.invalid(path, value, 'should be a non-negative integer'));
    else if (value > maxInt32)
      errors.push(fieldError.invalid(path, value, `should be less than or equal to ${maxInt32}`));
  }
  const selector = labelSelectorPath ? valueAt(object, labelSelectorPath) : undefined;
  if (labelSelectorPath && selector !== undefined && typeof selector !== 'string') {
    const detail = `${labelSelectorPath} accessor error: ${JSON.stringify(selector)} is of the type ${goType(selector)}, expected string`;
    errors.push(fieldError.invalid(labelSelectorPath, '', detail));
  }
  return errors;
}

function goType(value: unknown): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  return { string: 'string', boolean: 'bool', number: 'float64' }[typeof value as string] ?? 'map[string]interface {}';
}

/** The subresource `scale` of a version, with the given field paths. */
export function scaleOf({
  specReplicasPath,
  statusReplicasPath,
  labelSelectorPath,
}: ScalePaths): SubresourceDefinition {
  return {
    type: 'projection',
    name: 'scale',
    bodyKind,
    schema: ScaleSchema,
    replicasPath: stepsOf(specReplicasPath),
    read: (parent: KubeObject): Scale => {
      const selector = labelSelectorPath ? valueAt(parent, labelSelectorPath) : undefined;
      return {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: scaleMetadata(parent),
        spec: { replicas: numberAt(parent, specReplicasPath) },
        status: {
          replicas: numberAt(parent, statusReplicasPath),
          ...(typeof selector === 'string' && selector !== '' ? { selector } : {}),
        },
      };
    },
    write: (parent: AnyObject, body: Scale) => {
      // The validation of the parent refuses a negative number.
      setAt(parent, specReplicasPath, body.spec?.replicas ?? 0);
    },
  };
}
