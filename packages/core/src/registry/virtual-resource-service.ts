import type { QualifiedResource } from '../errors/status-error.ts';
import { statusErrors } from '../errors/status-error.ts';
import { shownResult } from '../kind/define-kind.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { VirtualKind } from '../kind/virtual-kind.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';
import { decodeBody, settleNamespace } from './decode-body.ts';
import {
  kindBodyType,
  type RegistryServices,
  requiredNamespace,
  signalOption,
  warningOnce,
} from './resource-binding.ts';
import type { Answer, Body, ResourceService, Target, WriteParameters } from './resource-service.ts';
import { translateError } from './translate-error.ts';

type CreateVirtual = NonNullable<VirtualKind<KubeObject>['create']>;

/**
 * The service of a kind whose objects are requests. It supports create only. Admission does not run, because nothing is
 * stored.
 */
export class VirtualResourceService implements ResourceService {
  readonly kind: KindDefinition;
  readonly #answer: CreateVirtual;
  readonly #services: RegistryServices;
  readonly #resource: QualifiedResource;

  constructor(kind: KindDefinition, answer: CreateVirtual, services: RegistryServices) {
    this.kind = kind;
    this.#answer = answer;
    this.#services = services;
    this.#resource = { group: kind.group, resource: kind.names.plural };
  }

  async create(caller: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const context = warningOnce(caller);
    try {
      return await this.#create(context, target, body, parameters);
    } catch (error) {
      const operated = { verb: 'create', resource: this.#resource, name: '', ...signalOption(context) } as const;
      throw translateError(error, operated, this.#services.logger);
    }
  }

  async #create(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const { kind } = this;
    const { clock, authorizer, authenticateToken, isRegistered, createSubresource } = this.#services;
    const namespace = requiredNamespace(kind, target);
    const decode = await decodeBody(kindBodyType(kind, isRegistered), {
      context,
      body,
      parameters,
      settle: (decoded) => settleNamespace(namespace, decoded),
    });
    const { object, errors } = decode();
    const { strategy } = kind;
    const fitsSchema = errors.length === 0;
    if (fitsSchema) strategy.default?.(object);
    const problems = fitsSchema ? (strategy.validate?.(object) ?? []) : errors;
    if (problems.length > 0) throw statusErrors.invalid(kind, object.metadata?.name ?? '', problems);
    const now = new Date(clock.now());
    const { dryRun } = parameters;
    const answer = await this.#answer(object, {
      ...{ context, namespace, now, dryRun, authorizer, authenticateToken },
      createSubresource: (resource, name, subresource, value) => {
        const parent = { name, ...(namespace === undefined ? {} : { namespace }) };
        return createSubresource(context, resource, parent, subresource, value, dryRun);
      },
    });
    if (typeof answer !== 'object' || answer === null)
      throw new TypeError(`the virtual kind ${kind.kind} answered with ${shownResult(answer)} instead of an object`);
    return { object: answer, code: 201 };
  }

  get = (): Promise<never> => this.#unsupported('get');
  list = (): Promise<never> => this.#unsupported('list');
  watch = (): Promise<never> => this.#unsupported('watch');
  update = (): Promise<never> => this.#unsupported('update');
  patch = (): Promise<never> => this.#unsupported('patch');
  delete = (): Promise<never> => this.#unsupported('delete');
  deleteCollection = (): Promise<never> => this.#unsupported('deletecollection');
  getSubresource = (): Promise<never> => this.#unsupported('get');
  updateSubresource = (): Promise<never> => this.#unsupported('update');
  patchSubresource = (): Promise<never> => this.#unsupported('patch');
  createSubresource = (): Promise<never> => this.#unsupported('create');
  connect = (): Promise<never> => this.#unsupported('get');

  #unsupported(verb: Verb): Promise<never> {
    return Promise.reject(statusErrors.methodNotAllowed(this.#resource, verb));
  }
}
