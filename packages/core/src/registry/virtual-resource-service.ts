import type { QualifiedResource } from '../errors/status-error.ts';
import { statusErrors } from '../errors/status-error.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { VirtualKind } from '../kind/virtual-kind.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import { requiredNamespace, settleNamespace } from './object-target.ts';
import { kindBodyType, type RegistryServices } from './resource-binding.ts';
import type { Answer, Body, ResourceService, Target, WriteParameters } from './resource-service.ts';
import { translating } from './translate-error.ts';
import { warningOnce } from './warning-once.ts';

/**
 * The operations on a kind without storage: create, and nothing else. Admission is about what is stored, so it is not
 * asked.
 */
export class VirtualResourceService implements ResourceService {
  readonly kind: KindDefinition;
  readonly #virtual: VirtualKind<KubeObject>;
  readonly #services: RegistryServices;
  readonly #resource: QualifiedResource;

  constructor(kind: KindDefinition, virtual: VirtualKind<KubeObject>, services: RegistryServices) {
    this.kind = kind;
    this.#virtual = virtual;
    this.#services = services;
    this.#resource = { group: kind.group, resource: kind.names.plural };
  }

  create(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const operation = {
      verb: 'create',
      resource: this.#resource,
      name: '',
      ...(context.signal ? { signal: context.signal } : {}),
    } as const;
    return translating(operation, () => this.#create(warningOnce(context), target, body, parameters));
  }

  async #create(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const { kind } = this;
    const { clock, authorizer, authenticateToken, isRegistered, createSubresource } = this.#services;
    const namespace = requiredNamespace(kind, target);
    const type = kindBodyType(kind, isRegistered);
    const parsed = parseBody(type, body, parameters.fieldValidation !== 'Ignore');
    settleType(type, parsed.value);
    const { object, errors, unknownFields } = decodeObject(type, parsed.value);
    checkFields(parameters.fieldValidation, { unknownFields, duplicateFields: parsed.duplicateFields }, context);
    settleNamespace(namespace, object);
    const { strategy } = kind;
    const sound = errors.length === 0;
    if (sound) strategy.default?.(object);
    const problems = sound ? (strategy.validate?.(object) ?? []) : errors;
    if (problems.length > 0) throw statusErrors.invalid(kind, object.metadata?.name ?? '', problems);
    const now = new Date(clock.now());
    const { dryRun } = parameters;
    const answer = await this.#virtual.create(object, {
      ...{ context, namespace, now, dryRun, authorizer, authenticateToken },
      createSubresource: (resource, name, subresource, value) => {
        const place = { name, ...(namespace === undefined ? {} : { namespace }) };
        return createSubresource(context, resource, place, subresource, value, dryRun);
      },
    });
    return { object: answer, code: 201 };
  }

  get = (): Promise<never> => this.#refuse('get');
  list = (): Promise<never> => this.#refuse('list');
  watch = (): Promise<never> => this.#refuse('watch');
  update = (): Promise<never> => this.#refuse('update');
  patch = (): Promise<never> => this.#refuse('patch');
  delete = (): Promise<never> => this.#refuse('delete');
  deleteCollection = (): Promise<never> => this.#refuse('deletecollection');
  getSubresource = (): Promise<never> => this.#refuse('get');
  updateSubresource = (): Promise<never> => this.#refuse('update');
  patchSubresource = (): Promise<never> => this.#refuse('patch');
  createSubresource = (): Promise<never> => this.#refuse('create');
  connect = (): Promise<never> => this.#refuse('get');

  #refuse(verb: Verb): Promise<never> {
    return Promise.reject(statusErrors.methodNotAllowed(this.#resource, verb));
  }
}
