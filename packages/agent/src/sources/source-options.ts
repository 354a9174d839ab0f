import type { Clock, Logger } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import type { EventRecorder } from '../base/contracts/event-recorder.ts';
import { podSubject } from '../base/contracts/event-recorder.ts';
import type { PodSink } from '../base/contracts/pod-source.ts';

/** What every source of this machine's own pods needs. */
export interface SourceOptions {
  readonly sink: PodSink;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** Tells that a pod is left out because another of its source has its name. */
export function refuseDuplicate({ events, logger }: SourceOptions, source: string): (pod: Pod) => void {
  return (pod) => {
    const { namespace = '', name = '' } = pod.metadata ?? {};
    logger.warn('pod left out: its source has another of the same name', { source, pod: `${namespace}/${name}` });
    events.record(
      podSubject(pod),
      'Warning',
      'FailedValidation',
      `Another pod of the source ${source} has the name ${namespace}/${name}`,
    );
  };
}
