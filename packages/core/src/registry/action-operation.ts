import { statusErrors } from '../errors/status-error.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AdmissionRequest } from './admission.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import { type ObjectTarget, settleNamespace } from './object-target.ts';
import { type ParentOperations, StoredParent } from './parent-access.ts';
import { bodyTypeOf } from './projection-operations.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, WriteParameters } from './resource-service.ts';

type Action = Extract<SubresourceDefinition, { type: 'action' }>;

/** POST to a subresource that does something with its parent: binding, eviction, rollback; api-conventions 10.3 to 10.5. */
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
    const parsed = parseBody(type, body, parameters.fieldValidation !== 'Ignore');
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
