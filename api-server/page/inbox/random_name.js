// Names and passwords that nobody has to think of.

const FIRST =
  "amber,ancient,autumn,bold,brave,bright,calm,clever,cosmic,crisp,curious,dapper,eager,early,elder,fair,fancy,gentle,giant,golden,happy,hidden,honest,humble,icy,jolly,keen,kind,lively,lucky,mellow,merry,mighty,misty,modern,noble,olive,plain,polite,proud,quick,quiet,rapid,rare,royal,rustic,scarlet,secret,shy,silent,silver,simple,sleepy,solar,steady,sunny,swift,tidy,tiny,velvet,vivid,warm,wild,wise".split(",");
const SECOND =
  "acorn,anchor,arrow,badger,beacon,birch,bison,breeze,brook,candle,canyon,cedar,cliff,clover,comet,coral,crane,creek,dune,eagle,ember,falcon,fern,finch,fjord,flint,forest,fox,garden,glacier,harbor,hazel,heron,island,juniper,lagoon,lantern,lark,maple,meadow,meteor,moss,oak,ocean,orchid,otter,owl,panda,pebble,pine,planet,quartz,raven,reef,river,robin,salmon,sparrow,spruce,stone,thistle,tulip,walnut,willow".split(",");

/** A number below `limit`, each as likely as the others. */
function below(limit) {
  const most = Math.floor(2 ** 32 / limit) * limit;
  const [word] = crypto.getRandomValues(new Uint32Array(1));
  return word < most ? word % limit : below(limit);
}

/** A local part such as `quiet-harbor-4821`: easy to read out, and one of 36 million. */
export const randomLocalPart = () => `${FIRST[below(FIRST.length)]}-${SECOND[below(SECOND.length)]}-${1000 + below(9000)}`;

const ALPHABET = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/** 20 characters of 56, without those that look alike: 116 bits. */
export const randomPassword = () => Array.from({ length: 20 }, () => ALPHABET[below(ALPHABET.length)]).join("");
