import { statusErrors } from '../errors/status-error.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { apiVersionOf } from '../meta/types.ts';
import type { AdmissionRequest } from './admission.ts';
import { type BodyType, decodeObject, type ParsedBody, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import { type ObjectTarget, settleNamespace } from './object-target.ts';
import { type ParentOperations, StoredParent } from './parent-access.ts';
import { bodyTypeOf } from './projection-operations.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, WriteParameters } from './resource-service.ts';

type Action = Extract<SubresourceDefinition, { type: 'action' }>;

/**
 * POST to a subresource that acts on its parent, such as binding, eviction and rollback: see
 * docs/reference/api-rules.md#subresources.
 */
export class ActionOperation {
  readonly #binding: ResourceBinding;
  readonly #parent: ParentOperations;

  constructor(binding: ResourceBinding, parent: ParentOperations) {
    this.#binding = binding;
    this.#parent = parent;
  }

  async run(
    context: RequestContext,
    target: ObjectTarget,
    action: Action,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const { kind, services } = this.#binding;
    const type = bodyTypeOf(this.#binding, action);
    const parsed = parseActionBody(type, action, body, parameters.fieldValidation !== 'Ignore');
    settleType(type, parsed.value);
    const { object, errors, unknownFields } = decodeObject(type, parsed.value);
    checkFields(parameters.fieldValidation, { unknownFields, duplicateFields: parsed.duplicateFields }, context);
    settleNamespace(target.namespace, object);
    if (errors.length > 0) throw statusErrors.invalid(action.bodyKind, target.name, errors);
    const request: AdmissionRequest = {
      operation: 'create',
      kind,
      namespace: target.namespace,
      name: target.name,
      subresource: action.name,
      object,
      oldObject: undefined,
      dryRun: parameters.dryRun,
      context,
    };
    const mutating = services.admission.mutate(request);
    if (mutating) await mutating;
    const validating = services.admission.validate(request);
    if (validating) await validating;
    const { code, object: answer } = await action.run({
      context,
      parent: new StoredParent(this.#binding, this.#parent, context, target, action.name),
      body: object,
      dryRun: parameters.dryRun,
      now: new Date(services.clock.now()),
    });
    return { object: answer, code };
  }
}

/** Reads a body in any of the versions that the action takes, as one in its own version. */
function parseActionBody(type: BodyType, action: Action, body: Body, duplicates: boolean): ParsedBody {
  const { otherVersions = [], bodyKind } = action;
  if (otherVersions.length === 0) return parseBody(type, body, duplicates);
  const parsed = parseBody({ kind: type.kind, schema: type.schema }, body, duplicates);
  const { apiVersion } = parsed.value;
  if (otherVersions.some((version) => apiVersion === apiVersionOf({ group: bodyKind.group, version }))) {
    parsed.value.apiVersion = type.apiVersion;
  }
  return parsed;
}
