import { parseJsonText } from '../json/json.ts';
import type { Status } from '../meta/status.ts';
import type { EventRepresentation } from '../storage/resource-storage.ts';
import { yamlMediaType } from './media-type.ts';
import { type EventPair, representationId, type WatchForm } from './wire-form.ts';
import { toYaml } from './yaml.ts';

const start = '---\n';
/** Ends a document, so that a reader need not wait for the next event to know that this one is complete. */
const end = '...\n';

/**
 * Watch events as a stream of YAML documents, each of the same content as the line of the JSON stream `json`. Frames
 * are made once per event and shared; they cost a parse of that line.
 */
export function yamlWatchForm(json: WatchForm): WatchForm {
  return {
    contentType: yamlMediaType,
    ...yamlPair(json),
    ...(json.first === undefined ? {} : { first: yamlPair(json.first) }),
    errorFrame: (status: Status) => yamlFrame({ type: 'ERROR', object: status }),
  };
}

function yamlPair({ plain }: EventPair): EventPair {
  const frame: EventRepresentation['encode'] = (type, object) =>
    yamlFrame(parseJsonText(plain.encode(type, object).toString('utf8')));
  return {
    plain: { id: representationId('yaml event plain'), encode: frame },
    chunked: {
      id: representationId('yaml event chunked'),
      encode: (type, object) => {
        const payload = frame(type, object);
        return Buffer.concat([Buffer.from(`${payload.length.toString(16)}\r\n`), payload, Buffer.from('\r\n')]);
      },
    },
  };
}

function yamlFrame(event: unknown): Buffer {
  return Buffer.concat([Buffer.from(start), toYaml(event), Buffer.from(end)]);
}
