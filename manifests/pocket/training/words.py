"""The words that the made-up documents are built from."""

NOUNS = """
anchor apricot atlas badger bakery balcony barge beacon birch bison boulder bridge cabin canyon castle cedar
chapel cliff cobra comet copper coral cottage crane crater crystal cypress delta depot desert diamond dolphin
dune eagle ember falcon ferry fjord forest fossil fountain garden geyser glacier granite harbor hawk hazel
heron hollow island jasper jungle kestrel lagoon lantern lark lemon library lighthouse linden lotus magnet
mango maple marble market meadow mill monsoon mountain museum nectar oasis ocean olive orchard orchid osprey
otter palace panther pasture pebble pepper pine planet plaza pond poplar prairie quarry quartz rabbit raven
reef river robin saddle saffron salmon savanna sequoia shelter silver sparrow spruce station stork summit
sunset swallow temple thicket thunder tiger timber topaz tower tulip tundra tunnel valley velvet violet
volcano walnut warbler waterfall wharf willow windmill zebra zephyr
""".split()

ADJECTIVES = """
amber ancient azure bold brave bright calm clever cold crimson curious dark deep distant eager early emerald
empty faded gentle giant golden green grey hidden high hollow humble icy indigo iron ivory jolly kind late
light little lively lonely long loud low lucky merry mighty misty narrow noble northern odd old open pale
patient plain polite proud purple quick quiet rapid red round royal rusty sandy scarlet secret sharp shiny
short silent simple sleepy small smooth snowy soft southern steady steep still stormy sunny sweet swift tall
tame tender tidy tiny twin upper vast warm western white wide wild windy wise young
""".split()

VERBS = """
sees finds keeps moves holds opens closes follows carries builds breaks mends paints counts hides joins leads
marks names offers plans reads saves sends sorts stops takes tests tries turns waits walks watches
""".split()

CITIES = """
Paris Oslo Cairo Lima Tokyo Madrid Berlin Dublin Athens Vienna Prague Warsaw Lisbon Helsinki Nairobi Delhi
Seoul Hanoi Quito Bogota Toronto Chicago Boston Denver Sydney Perth Rome Milan Zurich Geneva
""".split()
