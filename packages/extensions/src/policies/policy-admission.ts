import { missingIsUndefined } from '@keelson/client';
import {
  type AdmissionRequest,
  type ApiClient,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  labelSelectorOf,
  type ResourceClient,
  StatusError,
  type StatusReason,
  statusErrors,
} from '@keelson/core';
import type { policiesV1, ValidatingAdmissionPolicy } from '@keelson/kinds';
import { admissionBindings } from '../admission/expressions.ts';
import {
  type Dispatcher,
  expressionCheck,
  type IndexedAdmission,
  type IndexedAdmissionOptions,
  indexedPlugin,
} from '../admission/indexed-admission.ts';
import { EquivalentKinds, matchingKind, readNamespace, selects, waitUntilSynced } from '../admission/request-rules.ts';
import { requestFields } from '../webhooks/admission-review.ts';
import { type RequestView, RequestViews } from '../webhooks/request-view.ts';
import {
  type CompiledBinding,
  type CompiledMatch,
  type CompiledPolicy,
  compilePolicy,
  paramsValue,
} from './compiled-policy.ts';
import { evaluatePolicy, type Violation } from './evaluate-policy.ts';
import { type ActivePolicy, PolicyIndex } from './policy-index.ts';

/** Creates the admission by policies: see docs/how-to/write-admission-policies.md. */
export function admissionPolicies(options: IndexedAdmissionOptions): IndexedAdmission {
  const { plugin, service } = indexedPlugin({
    serviceName: 'admission-policies',
    pluginName: 'ValidatingAdmissionPolicy',
    dispatcher: (onChange) => new PolicyDispatcher(options, onChange),
    handles: (request) => !isReview(request),
  });
  return { plugins: [policyCheck, plugin], service };
}

/**
 * True for access and token reviews. Policies do not apply to them, because a review only asks about another request.
 */
function isReview({ kind }: AdmissionRequest): boolean {
  return (
    kind.group === 'authorization.k8s.io' || (kind.group === 'authentication.k8s.io' && kind.kind.endsWith('Review'))
  );
}

const policyCheck = expressionCheck('PolicyExpressions', ['validatingadmissionpolicies'], (policy) =>
  compilePolicy(policy as ValidatingAdmissionPolicy).expressions.map(([path, expression]) => ({
    ...{ path, source: expression.source },
    compile: () => expression,
  })),
);

const failureKey = 'validation.policy.admission.k8s.io/validation_failure';

/** HTTP status codes by the reason of a validation. */
const codes: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
};

class PolicyDispatcher implements Dispatcher {
  readonly index: PolicyIndex;
  readonly #options: IndexedAdmissionOptions;
  readonly #client: ApiClient;
  readonly #equivalent: EquivalentKinds;
  readonly #checks;

  constructor(options: IndexedAdmissionOptions, onChange: () => void) {
    this.#options = options;
    this.#client = options.client();
    const logger = options.logger.child({ component: 'admission-policies' });
    this.index = new PolicyIndex({ client: this.#client, clock: options.clock, logger, onChange });
    this.#equivalent = new EquivalentKinds(options.registry());
    this.#checks = options.metrics.counter({
      name: 'apiserver_validating_admission_policy_check_total',
      help: 'Requests that violated a policy, by policy, binding and enforcement action.',
      labels: ['policy', 'policy_binding', 'enforcement_action'],
    });
  }

  stop(): Promise<void> {
    return this.index.stop();
  }

  /** Evaluates all policies for a request and throws the first denial in the order of the policies. */
  async validate(request: AdmissionRequest): Promise<void> {
    if (!this.index.synced) await waitUntilSynced(this.index, request, this.#options.clock);
    const denials: StatusError[] = [];
    const views = new RequestViews(request);
    for (const active of this.index.active) denials.push(...(await this.#examine(active, request, views)));
    if (denials[0]) throw denials[0];
  }

  async #examine(
    { policy, bindings }: ActivePolicy,
    request: AdmissionRequest,
    views: RequestViews,
  ): Promise<StatusError[]> {
    const target = await this.#target(policy.match, request, true);
    if (target === undefined) return [];
    const denials: StatusError[] = [];
    const annotations = new Map<string, Set<string>>();
    for (const binding of bindings) {
      if ((await this.#target(binding.match, request, false)) === undefined) continue;
      let params: readonly (KubeObject | undefined)[];
      let view: RequestView;
      try {
        params = await this.#params(policy, binding, request);
        view = await views.of(target).catch(conversionFailed);
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        const message = `failed to configure binding: ${error.message}`;
        if (!policy.ignoreFailure)
          denials.push(denial(request, policy, binding, { message, reason: 'Invalid', index: 0 }));
        continue;
      }
      const { object, oldObject } = view;
      const fields = requestFields(request, view);
      const namespace = policy.usesNamespace ? await this.#namespace(request) : undefined;
      for (const param of params) {
        const examined = { request, object, oldObject, fields };
        const values = admissionBindings(examined, this.#options.authorizer, namespace);
        const params = paramsValue(param, policy.paramKind);
        const result = await evaluatePolicy(policy, { ...values, params });
        for (const violation of result.violations) denials.push(...this.#enforce(request, policy, binding, violation));
        for (const { key, value } of result.annotations) {
          annotations.set(key, (annotations.get(key) ?? new Set()).add(value));
        }
        for (const message of result.annotationErrors) {
          denials.push(denial(request, policy, binding, { message, reason: 'Invalid', index: 0 }));
        }
      }
    }
    for (const [key, values] of annotations)
      request.context.annotate?.(`${policy.name}/${key}`, [...values].join(', '));
    return denials;
  }

  #enforce(
    request: AdmissionRequest,
    policy: CompiledPolicy,
    binding: CompiledBinding,
    violation: Violation,
  ): StatusError[] {
    const denials: StatusError[] = [];
    for (const action of binding.actions) {
      const labels = { policy: policy.name, policy_binding: binding.name, enforcement_action: action.toLowerCase() };
      this.#checks.add(1, labels);
      if (action === 'Deny') denials.push(denial(request, policy, binding, violation));
      if (action === 'Warn') {
        const where = `ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}'`;
        request.context.warn(`Validation failed for ${where}: ${violation.message}`);
      }
      if (action === 'Audit') {
        const failure = {
          ...{ message: violation.message, policy: policy.name, binding: binding.name },
          ...{ expressionIndex: violation.index, validationActions: binding.actions },
        };
        request.context.annotate?.(failureKey, JSON.stringify([failure]));
      }
    }
    return denials;
  }

  /** The kind to which objects are converted for a policy or binding; undefined when it does not select the request. */
  async #target(
    match: CompiledMatch,
    request: AdmissionRequest,
    required: boolean,
  ): Promise<KindDefinition | undefined> {
    const equivalent = match.exact ? undefined : this.#equivalent;
    const named = ({ resourceNames = [] }: { resourceNames?: readonly string[] }): boolean =>
      resourceNames.length === 0 || resourceNames.includes(request.name);
    if (matchingKind(match.excluded.filter(named), request, equivalent)) return undefined;
    const anything = !required && match.rules.length === 0;
    const target = anything ? request.kind : matchingKind(match.rules.filter(named), request, equivalent);
    if (target === undefined) return undefined;
    return (await selects(match, request, this.#client)) ? target : undefined;
  }

  async #namespace({ kind, namespace }: AdmissionRequest): Promise<KubeObject | undefined> {
    if (!namespace || (kind.group === '' && kind.kind === 'Namespace')) return undefined;
    return readNamespace(this.#client, namespace);
  }

  /**
   * The parameter objects for which a policy is evaluated one by one. An undefined element means an evaluation without
   * parameters.
   */
  async #params(
    { paramKind }: CompiledPolicy,
    { paramRef }: CompiledBinding,
    request: AdmissionRequest,
  ): Promise<readonly (KubeObject | undefined)[]> {
    if (paramKind === undefined || paramRef === undefined) return [undefined];
    const { apiVersion, kind: kindName } = paramKind;
    const kind = this.#options
      .registry()
      .kinds()
      .find((known) => known.apiVersion === apiVersion && known.kind === kindName);
    if (kind === undefined) {
      throw new ConfigurationError(
        `failed to find resource referenced by paramKind: '${apiVersion}, Kind=${kindName}'`,
      );
    }
    const namespace = paramNamespace(kind, paramRef.namespace, request.namespace);
    const all = this.#client.resource<KubeObject>(kind);
    const client = namespace === undefined ? all : all.namespace(namespace);
    const found = await paramObjects(client, paramRef);
    if (found.length === 0 && paramRef.parameterNotFoundAction === 'Deny') {
      throw new ConfigurationError('no params found for policy binding with `Deny` parameterNotFoundAction');
    }
    return found;
  }
}

async function paramObjects(client: ResourceClient<KubeObject>, ref: policiesV1.ParamRef): Promise<KubeObject[]> {
  const { name, selector = {} } = ref;
  if (name) {
    const found = await client.get(name, { resourceVersion: '0' }).catch(missingIsUndefined);
    return found ? [found] : [];
  }
  const { items } = await client.list({ resourceVersion: '0' });
  const chosen = labelSelectorOf(selector);
  return items.filter(({ metadata }) => chosen.matches(metadata?.labels));
}

/** The error of a policy and binding that do not match each other, a kind of the server, or the request. */
class ConfigurationError extends Error {}

function conversionFailed(error: unknown): never {
  if (!isStatusError(error)) throw error;
  throw new ConfigurationError(`failed to convert object version: ${error.message}`, { cause: error });
}

function paramNamespace(kind: KindDefinition, given: string | undefined, own: string | undefined): string | undefined {
  if (kind.scope === 'Cluster') {
    if (!given) return undefined;
    throw new ConfigurationError('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
  }
  const namespace = given || own;
  if (namespace) return namespace;
  throw new ConfigurationError(
    'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
  );
}

function denial(
  { kind, name }: AdmissionRequest,
  policy: CompiledPolicy,
  binding: CompiledBinding,
  { message, reason }: Violation,
): StatusError {
  const text = `ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}' denied request: ${message}`;
  const resource = { group: kind.group, resource: kind.names.plural };
  const { status } = statusErrors.forbidden(resource, name, text, [{ message: text }]);
  return new StatusError({ ...status, reason: reason as StatusReason, code: codes[reason] ?? 422 });
}
