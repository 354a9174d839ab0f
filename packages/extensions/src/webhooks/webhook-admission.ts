import { isDeepStrictEqual } from 'node:util';
import {
  type AdmissionPlugin,
  type AdmissionRequest,
  type ApiClient,
  isStatusError,
  statusErrors,
} from '@keelson/core';
import { AdmissionChain, applyJsonPatch, isPatchError, parseJson } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { admissionBindings, compileCondition, type MatchConditions } from '../admission/expressions.ts';
import {
  type Dispatcher,
  expressionCheck,
  type IndexedAdmission,
  type IndexedAdmissionOptions,
  indexedPlugin,
} from '../admission/indexed-admission.ts';
import { EquivalentKinds, matchingKind, selects, waitUntilSynced } from '../admission/request-rules.ts';
import { serviceResolver } from '../services/resolve-service.ts';
import { type ReviewResponse, requestFields, requestText } from './admission-review.ts';
import { CallFailure, denial, WebhookCaller } from './call-webhook.ts';
import { type RequestView, RequestViews } from './request-view.ts';
import { type Webhook, type WebhookFields, WebhookIndex } from './webhook-index.ts';
import { WebhookMetrics, type WebhookType } from './webhook-metrics.ts';

export interface AdmissionWebhooksOptions extends IndexedAdmissionOptions {
  /** Plugins that run before the webhooks. If a webhook changes an object, their mutating steps run again. */
  readonly reinvoked: readonly AdmissionPlugin[];
}

/** Creates the admission by webhooks: see docs/how-to/use-admission-webhooks.md. */
export function admissionWebhooks(options: AdmissionWebhooksOptions): IndexedAdmission {
  const { plugin, service } = indexedPlugin({
    serviceName: 'admission-webhooks',
    pluginName: 'AdmissionWebhook',
    dispatcher: (onChange) => new WebhookDispatcher(options, onChange),
  });
  return { plugins: [conditionCheck, plugin], service };
}

const conditionCheck = expressionCheck(
  'WebhookMatchConditions',
  ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
  (object) => {
    const { webhooks = [] } = object as { readonly webhooks?: readonly WebhookFields[] };
    return webhooks.flatMap(({ matchConditions = [] }, i) =>
      matchConditions.map(({ expression: source }, j) => ({
        path: `webhooks[${i}].matchConditions[${j}].expression`,
        source,
        compile: () => compileCondition(source),
      })),
    );
  },
);

class WebhookDispatcher implements Dispatcher {
  readonly index: WebhookIndex;
  readonly #options: AdmissionWebhooksOptions;
  readonly #client: ApiClient;
  readonly #logger: Logger;
  readonly #caller: WebhookCaller;
  readonly #metrics: WebhookMetrics;
  readonly #equivalent: EquivalentKinds;
  readonly #reinvoked: AdmissionChain;

  constructor(options: AdmissionWebhooksOptions, onChange: () => void) {
    const { clock, metrics } = options;
    const client = options.client();
    this.#options = options;
    this.#client = client;
    this.#logger = options.logger.child({ component: 'admission-webhooks' });
    this.index = new WebhookIndex({ client, clock, logger: this.#logger, onChange });
    this.#caller = new WebhookCaller({ clock, resolveService: serviceResolver(client) });
    this.#metrics = new WebhookMetrics(metrics);
    this.#equivalent = new EquivalentKinds(options.registry());
    this.#reinvoked = new AdmissionChain(options.reinvoked);
  }

  async stop(): Promise<void> {
    await this.index.stop();
    this.#caller.close();
  }

  /** The view of a request for a webhook; undefined when the webhook does not select the request. */
  async #viewFor(webhook: Webhook, request: AdmissionRequest, views: RequestViews): Promise<RequestView | undefined> {
    const { fields, conditions } = webhook;
    const equivalent = fields.matchPolicy === 'Exact' ? undefined : this.#equivalent;
    const target = matchingKind(fields.rules, request, equivalent);
    if (target === undefined) return undefined;
    if (!(await selects(webhook, request, this.#client))) return undefined;
    const view = await views.of(target);
    return conditions === undefined || (await this.#meets(conditions, request, view)) ? view : undefined;
  }

  /** @throws StatusError 403 when the conditions cannot be decided */
  async #meets(conditions: MatchConditions, request: AdmissionRequest, view: RequestView): Promise<boolean> {
    const { object, oldObject } = view;
    const examined = { request, object, oldObject, fields: requestFields(request, view) };
    const { matches, error } = await conditions.match(admissionBindings(examined, this.#options.authorizer));
    if (error === undefined) return matches;
    const { group, names } = request.kind;
    throw statusErrors.forbidden({ group, resource: names.plural }, request.name, error);
  }

  /** Calls the mutating webhooks in sequence, and calls them again as their reinvocation policy requires. */
  mutate(request: AdmissionRequest): Promise<void> | undefined {
    if (!this.index.synced) {
      return waitUntilSynced(this.index, request, this.#options.clock).then(() => this.mutate(request));
    }
    const { mutating } = this.index;
    return mutating.length === 0 ? undefined : this.#mutate(mutating, request);
  }

  async #mutate(webhooks: readonly Webhook[], request: AdmissionRequest): Promise<void> {
    /** Webhooks that must be called again if the object changes after their call. */
    const called = new Set<Webhook>();
    const again = new Set<Webhook>();
    let changedOnce = false;
    let views = new RequestViews(request);
    const round = async (list: readonly Webhook[], number: number) => {
      for (const [i, webhook] of list.entries()) {
        if (number > 0 && !again.has(webhook)) continue;
        const view = await this.#viewFor(webhook, request, views);
        if (view === undefined) continue;
        if (await this.#mutateBy(webhook, request, view, `round_${number}_index_${i}`)) {
          changedOnce = true;
          views = new RequestViews(request);
          for (const one of called) again.add(one);
          called.clear();
        }
        if (webhook.fields.reinvocationPolicy === 'IfNeeded') called.add(webhook);
      }
    };
    await round(webhooks, 0);
    if (!changedOnce || request.object === undefined) return;
    const before = structuredClone(request.object);
    await this.#reinvoked.mutate(request);
    views = new RequestViews(request);
    if (!isDeepStrictEqual(before, request.object)) for (const one of called) again.add(one);
    if (again.size > 0) await round(webhooks, 1);
  }

  /** Calls a webhook and applies its patch; returns whether the object has changed. */
  async #mutateBy(webhook: Webhook, request: AdmissionRequest, view: RequestView, place: string): Promise<boolean> {
    const { fields, configuration } = webhook;
    const answer = await this.#call('admit', webhook, request, requestText(request, view), place, (response) =>
      patchedDocument(fields.name, view, response),
    );
    const changed = answer?.document !== undefined && !isDeepStrictEqual(answer.document, view.object);
    request.context.annotate?.(
      `mutation.webhook.admission.k8s.io/${place}`,
      JSON.stringify({ configuration, webhook: fields.name, mutated: changed }),
    );
    if (changed) await view.replace(answer?.document);
    return changed;
  }

  /** Calls the validating webhooks concurrently. The first denial in their order is thrown. */
  validate(request: AdmissionRequest): Promise<void> | undefined {
    const { validating } = this.index;
    return validating.length === 0 ? undefined : this.#validate(validating, request);
  }

  async #validate(webhooks: readonly Webhook[], request: AdmissionRequest): Promise<void> {
    const views = new RequestViews(request);
    const texts = new Map<RequestView, string>();
    const calls: (() => Promise<unknown>)[] = [];
    for (const webhook of webhooks) {
      const view = await this.#viewFor(webhook, request, views);
      if (view === undefined) continue;
      const text = texts.get(view) ?? requestText(request, view);
      texts.set(view, text);
      const place = `round_0_index_${calls.length}`;
      calls.push(() => this.#call('validating', webhook, request, text, place, () => ({ document: undefined })));
    }
    const { clock } = this.#options;
    const began = clock.monotonic();
    const results = await Promise.allSettled(calls.map((call) => call()));
    request.context.waited?.(clock.monotonic() - began);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /**
   * Calls a webhook and applies its failure policy. Returns undefined when the call failed and the failure is ignored.
   *
   * @param use reads the other contents of the response; throws a CallFailure
   * @throws StatusError the denial, or the failure of the call
   */
  async #call<T>(
    type: WebhookType,
    { fields, configuration }: Webhook,
    request: AdmissionRequest,
    text: string,
    place: string,
    use: (response: ReviewResponse) => T,
  ): Promise<T | undefined> {
    const { name, failurePolicy, sideEffects } = fields;
    const { clock } = this.#options;
    const { context } = request;
    const began = clock.monotonic();
    const done = (code: number, rejected: boolean, errorType?: string) => {
      const ms = clock.monotonic() - began;
      // Validating webhooks are called at the same time; their caller reports the time of all.
      if (type === 'admit') context.waited?.(ms);
      this.#metrics.called(name, type, request, { seconds: ms / 1000, code, rejected });
      if (errorType !== undefined) this.#metrics.rejected(name, type, request, errorType, code);
    };
    try {
      if (request.dryRun && sideEffects !== 'None' && sideEffects !== 'NoneOnDryRun')
        throw statusErrors.badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
      const response = await this.#caller.call(fields, request, text, type === 'admit');
      for (const [key, value] of Object.entries(response.annotations)) context.annotate?.(`${name}/${key}`, value);
      for (const warning of response.warnings) context.warn(warning);
      if (!response.allowed) throw denial(name, response);
      const result = use(response);
      done(200, false);
      return result;
    } catch (error) {
      context.signal?.throwIfAborted();
      if (!(error instanceof CallFailure)) {
        const code = isStatusError(error) ? error.code : 0;
        done(code, true, code === 0 || code === 500 ? 'apiserver_internal_error' : 'no_error');
        throw error;
      }
      const details = { configuration, webhook: name, err: error.message };
      if (failurePolicy !== 'Ignore') {
        done(error.code, true, 'calling_webhook_error');
        this.#logger.warn('an admission webhook failed and its request was rejected', details);
        throw statusErrors.internal(error.message, error);
      }
      done(error.code, false);
      this.#metrics.failedOpen(name, type);
      this.#logger.warn('an admission webhook failed and was ignored', details);
      const key = type === 'admit' ? 'mutation' : 'validating';
      context.annotate?.(`failed-open.${key}.webhook.admission.k8s.io/${place}`, name);
      return undefined;
    }
  }
}

/** The object after the patch of a webhook; undefined without a patch. @throws CallFailure, StatusError */
function patchedDocument(
  webhook: string,
  { object }: RequestView,
  { patch, patchType }: ReviewResponse,
): { readonly document: unknown } {
  if (patch === '') return { document: undefined };
  const operations = patchOperations(webhook, patch);
  if (operations.length === 0) return { document: undefined };
  if (object === undefined) {
    const text = `admission webhook ${JSON.stringify(webhook)} attempted to modify the object`;
    throw statusErrors.internal(`${text}, which is not supported for this operation`);
  }
  if (patchType !== 'JSONPatch')
    throw new CallFailure(webhook, `unsupported patch type ${JSON.stringify(patchType)}`, 400);
  try {
    return { document: applyJsonPatch(object, operations) };
  } catch (error) {
    if (isPatchError(error)) throw statusErrors.internal(error.message, error);
    throw error;
  }
}

function patchOperations(webhook: string, patch: string): unknown[] {
  try {
    const { value } = parseJson(Buffer.from(patch));
    if (Array.isArray(value)) return value;
  } catch {
    // A patch that cannot be parsed is rejected below, like any patch that is not a list.
  }
  const why = 'received undecodable patch in webhook response: the patch is not a list of operations';
  throw new CallFailure(webhook, why, 503);
}
