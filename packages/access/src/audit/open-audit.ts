import { type Auditor, UsageError } from '@keelson/core/internal';
import { readConfigFile } from '../read-config.ts';
import { type AuditContext, AuditLog, type AuditLogOptions } from './audit-log.ts';
import type { AuditSink } from './audit-sink.ts';
import { openAuditWebhook } from './audit-webhook.ts';
import { createAuditor } from './auditor.ts';
import { parseAuditPolicy } from './policy.ts';

/** Which requests are recorded, and where. At least one place is required. */
export interface AuditOptions {
  /** File with an `audit.k8s.io/v1` Policy. */
  readonly policyFile: string;
  readonly log?: AuditLogOptions;
  /** Kubeconfig of the server that receives the events. */
  readonly webhookConfigFile?: string;
}

export interface Audit {
  readonly auditor: Auditor;
  /** Stores the events that are buffered. To be called when the last request has ended. */
  close(): Promise<void>;
}

/**
 * Reads the policy and opens the places where events are stored.
 *
 * @param sharedLog the log of several threads, in place of one that is opened here
 * @throws UsageError
 */
export async function openAudit(
  { policyFile, log, webhookConfigFile }: AuditOptions,
  context: AuditContext,
  sharedLog?: AuditSink,
) {
  const option = '--audit-policy-file';
  const policy = parseAuditPolicy(await readConfigFile(policyFile, option), `${option} ${policyFile}`);
  if (log === undefined && webhookConfigFile === undefined)
    throw new UsageError(`${option} requires --audit-log-path or --audit-webhook-config-file`);
  const webhook = webhookConfigFile === undefined ? [] : [await openAuditWebhook(webhookConfigFile, context)];
  const sinks: AuditSink[] = [...(log === undefined ? [] : [sharedLog ?? new AuditLog(log, context)]), ...webhook];
  const auditor = createAuditor({ policy, sinks, ...context });
  const audit: Audit = {
    auditor,
    close: async () => {
      auditor.flush();
      await Promise.all(sinks.map((sink) => sink.close()));
    },
  };
  return audit;
}
