import { join } from 'node:path';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { AgentConfig } from '../base/config/agent-config.ts';
import type { PodSource, PodSourceName } from '../base/contracts/pod-source.ts';
import type { EventRecorder } from '../base/events/event-recorder.ts';
import { ApiSource } from './api-source.ts';
import { Checkpoints } from './checkpoints.ts';
import { FileSource } from './file-source.ts';
import { HttpSource } from './http-source.ts';
import { MirrorPods } from './mirror-pods.ts';
import { PodConfig } from './pod-config.ts';
import { SubmitSource } from './submit-source.ts';
import { submittedManifestsIn } from './submitted-manifests.ts';

export interface SourcesOptions {
  readonly config: Pick<AgentConfig, 'nodeName' | 'rootDir' | 'sources' | 'server'>;
  /** Undefined: the agent runs alone. */
  readonly client: ApiClient | undefined;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** All configured sources, merged. */
export interface Sources {
  readonly config: PodConfig;
  /** Undefined when the main port is closed, so that nothing can be submitted. */
  readonly submit: SubmitSource | undefined;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Creates the sources; nothing is read before `start`. Subscribe to `config` before that. */
export function createSources({ config: agent, client, events, clock, logger }: SourcesOptions): Sources {
  const { nodeName, sources: wanted } = agent;
  const names: PodSourceName[] = [];
  if (wanted.manifestPath !== undefined) names.push('file');
  if (wanted.manifestUrl !== undefined) names.push('http');
  if (agent.server.enabled) names.push('submit');
  if (client !== undefined) names.push('api');
  const config = new PodConfig({ sources: names, clock, logger });
  const common = (source: PodSourceName) => ({
    sink: config.sink(source),
    nodeName,
    clock,
    events,
    logger: logger.child({ component: `source-${source}` }),
  });
  const all: PodSource[] = [];
  if (wanted.manifestPath !== undefined) {
    all.push(new FileSource({ ...common('file'), path: wanted.manifestPath, periodMs: wanted.fileCheckMs }));
  }
  if (wanted.manifestUrl !== undefined) {
    const { manifestUrl: url, manifestUrlHeaders: headers, httpCheckMs: periodMs } = wanted;
    all.push(new HttpSource({ ...common('http'), url, headers, periodMs }));
  }
  const submit = agent.server.enabled
    ? new SubmitSource({ ...common('submit'), store: submittedManifestsIn(join(agent.rootDir, 'manifests')) })
    : undefined;
  if (submit !== undefined) all.push(submit);
  let mirrors: MirrorPods | undefined;
  if (client !== undefined) {
    const options = common('api');
    const { checkpointPath } = wanted;
    const checkpoints = checkpointPath === undefined ? undefined : new Checkpoints(checkpointPath, options.logger);
    const [changes, restore] = [config.changesSink('api'), (pods: readonly Pod[]) => config.restore('api', pods)];
    all.push(new ApiSource({ ...options, client, changes, checkpoints, restore }));
    mirrors = new MirrorPods({ client, nodeName, config, clock, logger: logger.child({ component: 'mirror-pods' }) });
  }
  return {
    config,
    submit,
    async start() {
      mirrors?.start();
      await Promise.all(all.map((source) => source.start()));
    },
    async stop() {
      await Promise.all([...all.map((source) => source.stop()), mirrors?.stop()]);
    },
  };
}
