"""Words that every turn is full of, in a few languages, and that say nothing about what it is about."""

from __future__ import annotations

# Short on purpose: a word that is missing here only counts a little, because common words weigh
# little anyway; a word that is here by mistake can never be found.
_ENGLISH = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn did didn do does doesn doing don down during each few for from further had hadn
has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just let me
more most mustn my myself no nor not now of off on once only or other ought our ours ourselves out over own same shan
she should shouldn so some such than that the their theirs them themselves then there these they this those through to
too under until up very was wasn we were weren what when where which while who whom why will with won would wouldn you
your yours yourself yourselves s t d ll m re ve yes ok okay please thank thanks
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da das dass dein deine dem den der des die dir doch du ein eine einem einen
einer er es euch fur haben hat hatte ich ihm ihn ihr ihre im ist ja kann mein meine mich mir mit nach nicht noch nur
oder sein sich sie sind uber um und uns unser von vor war was wenn wer wie wir wird wo zu zum zur nein bitte danke
"""
_FRENCH = """
au aux avec ce ces cette dans de des du elle en est et eux il ils je la le les leur lui ma mais mes moi mon ne nos notre
nous on ou par pas pour qu que qui sa se ses son sont sur ta te tes toi ton tu un une vos votre vous oui non merci
"""
_SPANISH = """
al como con cual cuando de del donde el ella en era eres es esta este esto hay la las le les lo los mas me mi mis muy
nos o para pero por porque que quien se ser si sin sobre soy su sus te tu tus un una y ya yo
"""

STOP_WORDS: frozenset[str] = frozenset(" ".join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH)).split())
"""Folded as `tokens.fold` folds: no capitals, no accents."""
