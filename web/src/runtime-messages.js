/** @file Make onnxruntime's messages readable, as edgekit does on the desktop: what is wrong, without codes and C++. Pure. */

const FROM_RUNTIME = /ERROR_CODE: \d+, ERROR_MESSAGE: |\[ONNXRuntimeError\] : \d+ : /;
const PREFIX =
  /(?:(?:failed to call Ort\w+\(\)|Can't [^.]{1,80})\. )?ERROR_CODE: \d+, ERROR_MESSAGE: |\[ONNXRuntimeError\] : \d+ : [A-Z_]+ :\s*/;
const NODE = /Non-zero status code returned while running (\S+) node\.? Name:'(.*?)' Status Message: /gs;
const LOCATION = /(?:[^\s:"']*\/)?\w[\w.-]*\.(?:cc|cpp|h|hpp|cu):\d+ /;
const AFTER_SIGNATURE = /^(?: const\b|::<lambda[^>]*>|::operator\(\)| \[with [^\]]*\])*\s*/;
const CONDITION = /^[^"]{1,200}? was false\. (?=\S)/;
const STACK = /\s*\bStacktrace:.*/s;
const LONGEST = 500;

/**
 * @param {string} text
 * @returns {string} messages of the runtime: on one line of at most 500 characters; other text: as it is
 */
export function readable(text) {
  if (!FROM_RUNTIME.test(text)) {
    return text;
  }
  let rest = text
    .replace(STACK, '')
    .replace(PREFIX, '')
    .replace(NODE, (_, operator, name) => `${operator} node ${name === '' ? 'without a name' : `'${name}'`}: `);
  for (let place = LOCATION.exec(rest); place !== null; place = LOCATION.exec(rest)) {
    const after = withoutSignature(rest.slice(place.index + place[0].length));
    rest = rest.slice(0, place.index) + after.replace(CONDITION, '');
  }
  rest = rest.replace(/\s+/g, ' ').trim();
  return rest.length <= LONGEST ? rest : `${rest.slice(0, LONGEST - 1)}…`;
}

/**
 * Cut the function that comes first: `Compute ...` or `void a::B::C(int, D<E>) const ...`.
 *
 * @param {string} text
 * @returns {string}
 */
function withoutSignature(text) {
  const opening = text.indexOf('(');
  const before = opening < 0 ? '' : text.slice(0, opening);
  // Prose before the parenthesis means that it belongs to the message, not to a signature.
  if (opening < 0 || !(before.includes('::') || /^[\w&*<>, ]*\w$/.test(before)) || before.includes('. ')) {
    return text.replace(/^\w+ /, '');
  }
  let depth = 0;
  for (let position = opening; position < text.length; position += 1) {
    depth += text[position] === '(' ? 1 : text[position] === ')' ? -1 : 0;
    if (depth === 0) {
      return text.slice(position + 1).replace(AFTER_SIGNATURE, '');
    }
  }
  return text;
}
